/* SPDX-License-Identifier: BSD-3-Clause */
/* start.h - a communicator among ranks that know where to meet. */
#ifndef RONDO_COMM_START_H
#define RONDO_COMM_START_H

#include "comm/state/comm.h"

/* A seat at the meeting: the place to meet at, and the rank to come as. */
struct bootstrap_place;
struct bootstrap_watch;
struct seat {
    const struct bootstrap_place *place; /* NULL: a communicator of one rank needs none */
    int rank, size;
    bool serve;
    const struct bootstrap_watch *watch; /* NULL: none */
};
rondo_result start_at_seat(const struct seat *seat, const rondo_config *config,
                           rondo_comm **ret_comm);

#endif
