/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - calls that are being run, and who moves their data.
 *
 * A *task* is one call of one rank. A *batch* is what one rank's communicator does in one turn: a
 * single call, or all calls of a call group on that communicator.
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
    int suspect; /* 1 + a peer seen closed or ended once, see suspect_peer(); 0: none */
    const struct backend
        *backend;  /* who moves its messages; NULL until batch_open(): this thread */
    bool again;    /* the second attempt: peers' memory can't be reached */
    bool numbered; /* a collective, which the communicator counts; or else a message */
    struct choice *choice;
    double began;          /* when it began, if its time tells the choice how to store; else 0 */
    struct choice *offer;  /* the choice of the first attempt, if plain memory might be read */
    double offered;        /* when that attempt began, if its time decides about reads; else 0 */
    uint64_t recorded;     /* mark of the call's record */
    uint64_t trace_begun;  /* of a traced call: nanoseconds */
    uint32_t trace_name;   /* the same: number of its name */
    struct operation made; /* of an operation of the user's own, which may be destroyed by now */
    struct kernel_op op;
    struct execution execution;
};

struct batch {
    rondo_comm *comm; /* it may be closed as soon as the batch has ended */
    int size, rank;   /* of `comm` */
    struct task *tasks;
    int count;
    int left;               /* tasks not done */
    unsigned ticket;        /* of the turn, taken when the calls were made */
    const rondo_call *call; /* that the only task is, where repetitions are looked for, or NULL */
    double still_since;     /* when the present wait was first noticed, 0: it moves */
    double leaving; /* since when it leaves a failed call (leave.h), 0: it does not, -1: it will */
    bool done;
    rondo_result refused; /* the first error of a call that did not start */
    rondo_result result;
};

/*
 * A backend moves the data of calls: this thread (thread_backend, engine/run.c) or a device
 * (gpu/gpu.c). A communicator has a backend, which brings the memory of a call to where it can be
 * used; each of its tasks has one as well, as even with a device this thread moves some calls.
 */
struct backend {
    bool on_device; /* messages are written and read by a device, not by this process */
    /* Runs all batches to their end; returns the error of the first batch that has one. Their turns
     * are taken. */
    rondo_result (*run)(struct batch *batches, int count);
    /* The task's execution is about to start. NULL: nothing to do. */
    rondo_result (*begin)(rondo_comm *comm, struct task *task);
    /* Advances an execution, with the contract of exec_advance(). */
    enum exec_state (*advance)(struct execution *execution);
    /* True if `memory` is a host buffer in which a call is staged, not the caller's.
     * NULL: never. */
    bool (*stages)(rondo_comm *comm, const void *memory);
};

extern const struct backend thread_backend;

/* A task that is new and has this thread for its backend; `made` is the caller's to set. */
static inline void task_init(struct task *task, const struct choice_key *key, const void *input,
                             void *output)
{
    task->key = *key;
    task->input = input;
    task->output = output;
    task->state = TASK_NEW;
    task->suspect = 0;
    task->backend = &thread_backend;
    task->again = false;
}

#endif
