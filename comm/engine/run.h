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

/* On one host most messages arrive within a cache line's journey between two cores: for so many
 * rounds of so many looks only the flags of one call are polled (exec_poll()). */
enum { POLL_ROUNDS = 16, POLL_LOOKS = 64 };

/* ---- The parts that repeat.c runs by itself; the turn is the batch's ------------------------- */

/* Does the task belong to those that skip trying peers' memory while comm->resting says so
 * (run.c)? */
bool task_may_rest(const rondo_comm *comm, const struct task *task);
/* Would the task skip trying peers' memory if it started now? */
static inline bool task_rests(const rondo_comm *comm, const struct task *task)
{
    return comm->resting && task_may_rest(comm, task);
}
/* Begin a task whose choice is made and whose execution is bound to it; it can be advanced then. */
rondo_result task_begin(rondo_comm *comm, struct task *task);
/* End a task whose plan is done. */
void task_end(struct batch *batch, struct task *task);
/* React to the state that advancing the task led to; true if it moved. */
bool task_react(struct batch *batch, struct task *task, enum exec_state state);

/* ---- Batches --------------------------------------------------------------------------------- */

/* A batch over the caller's tasks, in line for its turn. It must be run. */
void batch_open(struct batch *batch, rondo_comm *comm, struct task *tasks, int count);
/* Run all batches to the end; the first error of any. This thread must be able to use their
 * memory. */
rondo_result run_batches(struct batch *batches, int count);
/* As run_batches(), by the hands of their communicators, so for memory of any kind. */
rondo_result run_by_hands(struct batch *batches, int count);
/* Run one call, in a batch on the caller's stack. */
rondo_result run_task(rondo_comm *comm, struct task *task);

#endif
