/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - running calls to their end.
 *
 * A *task* is one call of one rank. A *batch* is what one rank's communicator does in one turn: a
 * single call, or all calls of a group on that communicator. Collectives of a batch run one after
 * another, sends and receives beside each other and beside them. One thread can run many batches,
 * so a group may hold calls of many ranks.
 */
#ifndef RONDO_COMM_RUN_H
#define RONDO_COMM_RUN_H

#include "comm/comm.h"

enum task_state { TASK_NEW, TASK_RUNNING, TASK_DONE };

struct task {
    struct choice_key key;
    const void *input;
    void *output;
    enum task_state state;
    int mourned;    /* 1 + the peer that was seen to have closed or ended, 0: none */
    bool on_device; /* a device moves its messages: gpu_move.c */
    bool again;     /* the second attempt: peers' memory can't be reached */
    struct choice *choice;
    double began;          /* if its time tells the choice how to store, else 0 */
    struct choice *offer;  /* the choice of the first attempt, if plain memory might be read */
    double offered;        /* ... and when that began, if its time tells whether to; else 0 */
    struct operation made; /* of an operation of the user's own, which may be destroyed by now */
    struct kernel_op op;
    struct execution execution;
};

struct batch {
    rondo_comm *comm;
    struct task *tasks;
    int count;
    int left;               /* tasks not done */
    unsigned ticket;        /* of the turn, taken when the calls were made */
    const rondo_call *call; /* that the only task is, where repetitions are looked for, or NULL */
    double began;           /* when the present wait was first noticed, 0: it moves */
    double leaving;         /* since when it leaves a failed call (leave.h), 0: it doesn't */
    bool done;
    rondo_result refused; /* the first error of a call that did not start */
    rondo_result result;
};

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
/* Run all of them to the end; the first error of any. */
rondo_result run_batches(struct batch *batches, int count);
/* One call, on the caller's stack. */
rondo_result run_task(rondo_comm *comm, struct task *task);

#endif
