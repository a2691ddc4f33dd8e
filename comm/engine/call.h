/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - from what the user asked for to a task:
 * everything that can be wrong with one rank's arguments. */
#ifndef RONDO_COMM_ENGINE_CALL_H
#define RONDO_COMM_ENGINE_CALL_H

#include "comm/engine/run.h"

/* RONDO_ERROR_INVALID with a sentence, or the task that does it. Nothing is started. */
rondo_result call_check(const rondo_call *call, struct task *ret_task);

/* ---- group.c ---- */

bool group_is_open(void); /* of the calling thread */
/* Remember a call, or the joining of a communicator, until the group ends. */
rondo_result group_add_call(rondo_comm *comm, rondo_stream *stream, const struct task *task);
struct join;
rondo_result group_add_join(const struct join *join);
/* An error inside of a group makes the whole group fail. */
void group_spoil(rondo_result result);

/* ---- start.c ---- */

struct join {
    rondo_unique_id id;
    int size, rank;
    rondo_config config;
    rondo_comm **ret_comm;
};
rondo_result join_by_id(void *join);

/* Where to meet, and as whom. */
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
