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
/* `join` is called with `argument` in a thread of its own, beside others; then that is freed. */
rondo_result group_add_join(rondo_result (*join)(void *argument), void *argument);
/* An error inside of a group makes the whole group fail. */
void group_spoil(rondo_result result);

#endif
