/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - calls that are being run, and who moves their data.
 *
 * A *task* is one call of one rank. A *batch* is what one rank's communicator does in one turn: a
 * single call, or all calls of a group on that communicator.
 */
#ifndef RONDO_COMM_STATE_TASK_H
#define RONDO_COMM_STATE_TASK_H

#include "comm/state/comm.h"

enum task_state { TASK_NEW, TASK_RUNNING, TASK_DONE };

struct task {
    struct choice_key key;
    const void *input;
    void *output;
    enum task_state state;
    int mourned;               /* 1 + a peer seen closed or ended once, see mourn(); 0: none */
    const struct hands *hands; /* who moves its messages; NULL until batch_open(): this thread */
    bool again;                /* the second attempt: peers' memory can't be reached */
    struct choice *choice;
    double began;          /* when it began, if its time tells the choice how to store; else 0 */
    struct choice *offer;  /* the choice of the first attempt, if plain memory might be read */
    double offered;        /* when that attempt began, if its time decides about reads; else 0 */
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

/*
 * The mover of data: this thread (thread_hands, engine/run.c) or a device (gpu/gpu.c). A
 * communicator has hands, which bring the memory of a call to where it can be used; each of its
 * tasks has hands as well, as even with a device this thread moves some calls.
 */
struct hands {
    bool on_device; /* messages are written and read by a device, not by this process */
    /* Runs all batches to their end: the first error of any. Their turns are taken. */
    rondo_result (*run)(struct batch *batches, int count);
    /* The task's execution is about to start. NULL: nothing to do. */
    rondo_result (*begin)(rondo_comm *comm, struct task *task);
    /* Advances an execution, with the contract of exec_advance(). */
    enum exec_state (*advance)(struct execution *execution);
    /* Is `memory` a host buffer in which a call is staged, not the caller's? NULL: never. */
    bool (*stages)(rondo_comm *comm, const void *memory);
};

extern const struct hands thread_hands;

#endif
