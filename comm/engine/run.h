/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - running calls to their end.
 *
 * Collectives of a batch run one after another, sends and receives beside each other and beside
 * them. One thread can run many batches, so a group may hold calls of many ranks.
 */
#ifndef RONDO_COMM_ENGINE_RUN_H
#define RONDO_COMM_ENGINE_RUN_H

#include "comm/state/task.h"

/* What one call waits for comes within a line's journey between two cores, most of the time: for so
 * many rounds of so many looks its flags alone are polled (exec_poll()). */
enum { POLL_ROUNDS = 16, POLL_LOOKS = 64 };

/* ---- The parts that repeat.c runs by itself; the turn is the batch's ------------------------- */

/* Is this one of the calls that leave out looking for peers' memory while `resting` says so? */
bool task_may_rest(const rondo_comm *comm, const struct task *task);
/* Would it leave that out if it came now? */
static inline bool task_rests(const rondo_comm *comm, const struct task *task)
{
    return comm->resting && task_may_rest(comm, task);
}
/* Its choice is made, and its execution bound to it: from here on it can be advanced. */
rondo_result task_begin(rondo_comm *comm, struct task *task);
/* Its plan is done. */
void task_end(struct batch *batch, struct task *task);
/* What advancing it led to; true if it moved. */
bool task_react(struct batch *batch, struct task *task, enum exec_state state);

/* ---- Batches --------------------------------------------------------------------------------- */

/* A batch over the caller's tasks, in line for its turn. It must be run. */
void batch_open(struct batch *batch, rondo_comm *comm, struct task *tasks, int count);
/* Run all of them to the end; the first error of any. Their memory is of use to this thread. */
rondo_result run_batches(struct batch *batches, int count);
/* The same by the hands of their communicators, whatever memory it is. */
rondo_result run_by_hands(struct batch *batches, int count);
/* One call, on the caller's stack. */
rondo_result run_task(rondo_comm *comm, struct task *task);

#endif
