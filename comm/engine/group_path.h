/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_path.h - a group that is the same as the one before: a message each way, or two.
 *
 * What fast_path.h does for a lone call. A thread keeps the last two calls of a group as tasks that
 * are ready to begin; a group of the same calls, arguments and buffers, checks nothing, chooses
 * nothing and binds nothing again. They are the thread's own, so that calls are compared without
 * the turn; a number on the communicator tells that they are still of this one, as another may be
 * opened at its address.
 */
#ifndef RONDO_COMM_ENGINE_GROUP_PATH_H
#define RONDO_COMM_ENGINE_GROUP_PATH_H

#include "comm/engine/run.h"

enum { GROUP_PATH_CALLS = 2 };

/* Returns the task that call number `index` of a group was the last time; NULL: it was another
 * call. */
const struct task *group_path_find(const rondo_call *call, size_t index);
/* If nothing has happened that the two calls depend on, runs them. Both were found. */
bool group_path_run(rondo_result *ret_result);
/* A group of two tasks on a communicator has ended well. */
void group_path_note(rondo_comm *comm, const struct task *tasks);

#endif
