/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - a communicator among ranks that know where to meet. */
#ifndef RONDO_COMM_START_H
#define RONDO_COMM_START_H

#include "comm/recovery/recovery.h"

/* A membership of the job: the place to meet at, and the rank to come as. */
struct bootstrap_place;
struct bootstrap_watch;
struct membership {
    const struct bootstrap_place *place; /* NULL: a communicator of one rank needs none */
    int rank, size;
    bool serve;
    const struct bootstrap_watch *watch; /* NULL: none */
    bool *ret_met;                       /* true: this rank has met the others; NULL: of no use */
    bool *ret_nobody;                    /* of struct bootstrap_part; NULL: of no use */
};
rondo_result start_member(const struct membership *membership, const rondo_config *config,
                          rondo_comm **ret_comm);
/*
 * All ranks that are left keep the communicator that they have opened, or none does: an agreement
 * on it, to which who could not open it does not come, and so counts as failed. Closes it if it
 * returns an error, whose sentence begins with `function` and ends with `advice`.
 */
rondo_result start_settle(rondo_comm *comm, enum recovery_purpose purpose, const char *function,
                          const char *advice);

#endif
