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

/* The note of a thread. It begins as zeros. */
struct group_path {
    rondo_comm *comm; /* NULL: nothing was noted */
    uint64_t serial;  /* of this note, on `comm` too for as long as it holds */
    bool ready;       /* tasks are bound; else they only say which calls they were */
    unsigned made;    /* choices made by then */
    struct task tasks[GROUP_PATH_CALLS];
};

/* True if the call, which has no stream, is call number `index` of the noted group. */
bool group_path_has(const struct group_path *path, const rondo_call *call, size_t index);
/* If nothing has happened that the two calls depend on, runs them. The path had both. */
bool group_path_run(struct group_path *path, rondo_result *ret_result);
/* A group of two tasks on a communicator has ended well. */
void group_path_note(struct group_path *path, rondo_comm *comm, const struct task *tasks);

#endif
