/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - running calls to their end.
 *
 * Collectives of a batch run one after another, sends and receives beside each other and beside
 * them. One thread can run many batches, so a call group may hold calls of many ranks.
 */
#ifndef RONDO_COMM_ENGINE_RUN_H
#define RONDO_COMM_ENGINE_RUN_H

#include "base/fail.h"
#include "comm/state/task.h"
#include "comm/state/wait.h"

/* Opens a batch over the caller's tasks, in line for its turn. It must be run; `batch` and `tasks`
 * are the caller's, and have to live until then. */
void batch_open(struct batch *batch, rondo_comm *comm, struct task *tasks, int count);
/* Does the same with a turn that was taken before. */
void batch_open_at(struct batch *batch, rondo_comm *comm, struct task *tasks, int count,
                   unsigned ticket);
/* Runs all batches, at least one, to the end; returns the error of the first batch that has one.
 * This thread must be able to use their memory. */
rondo_result run_batches(struct batch *batches, int count);
/* Advances a batch whose turn has come as far as it comes, and stays with its last task for a
 * moment if there is a waiter; true if it moved. `done` tells whether it has ended. */
bool batch_advance(struct batch *batch, struct waiter *waiter);
/* Checks on the peers of a batch that does not move, as what it waits for may never come; true: the
 * batch has ended. */
bool batch_look_after(struct batch *batch, double now);
/* The first batch in order that has an error, whose sentence those of others would replace. */
struct first_error {
    int index; /* no less than the number of batches: none has one so far */
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
};
/* Makes one round over all batches: advances each, or pauses and looks after them if none moves.
 * Returns how many are left. The first error is not kept where `first` is NULL. */
int batches_round(struct batch *batches, int count, struct waiter *waiter,
                  struct first_error *first);
/* Runs a batch of one task that this thread moves, whose choice was made before and its execution
 * bound to that; its turn has come. Returns its error. */
rondo_result run_ready(struct batch *batch);
/* Does the same for a batch of messages that differ in their peer or their direction. */
rondo_result run_ready_messages(struct batch *batch);
/* Runs all batches to the end by the backends of their communicators, so for memory of any kind;
 * returns the error of the first batch that has one. */
rondo_result run_by_backend(struct batch *batches, int count);
/* Runs one call, in a batch on the caller's stack. */
rondo_result run_task(rondo_comm *comm, struct task *task);

#endif
