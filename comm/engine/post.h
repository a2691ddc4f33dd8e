/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.h - calls that were begun and are finished by whoever comes next.
 *
 * A posted call has the turn of its communicator, and all its messages are on their way. It hangs
 * at the communicator until somebody takes it: a thread that waits for it, or one whose own call is
 * next. Who has taken it is the only one to touch its batch, and gives it back, over or not.
 */
#ifndef RONDO_COMM_ENGINE_POST_H
#define RONDO_COMM_ENGINE_POST_H

#include "comm/state/task.h"
#include "rondo/bindings.h"

struct rondo_request {
    struct batch batch;
    struct task task;
    atomic_int users;      /* its owner, and the communicator until it is over */
    uint32_t home;         /* of the process that made it: fork_home() */
    _Atomic double looked; /* when peers were looked after in short waits, or the first began */
    rondo_result result;   /* these two when it is over */
    char *sentence;        /* of an error; NULL: no error, or no memory */
    atomic_bool over;
};

/* Take the posted call of the communicator; NULL: there is none, or another thread has it. */
struct rondo_request *post_take(rondo_comm *comm);
/* Give it back; it hangs at the communicator again unless its batch has ended. */
void post_give(struct rondo_request *request);
/* Finish the posted call of the communicator, or doze for a moment if there is none to take: for
 * who waits for a turn without running a batch. */
void post_finish_or_doze(rondo_comm *comm);
/* Finish posted calls that use [memory, memory + bytes). */
void posts_let_go(const void *memory, size_t bytes);

#endif
