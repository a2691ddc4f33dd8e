/* SPDX-License-Identifier: BSD-3-Clause */
/* life.h - the life of a task in its batch, which has the turn: it starts, perhaps once more in
 * another way, and ends. Errors go to the batch. */
#ifndef RONDO_COMM_ENGINE_LIFE_H
#define RONDO_COMM_ENGINE_LIFE_H

#include "base/collective.h"
#include "comm/state/task.h"

/*
 * True if the task would skip trying peers' memory if it started now. Whether peers can reach the
 * buffers shows in a round of messages, a quarter of what a call of 4 KiB takes. After some
 * attempts in vain it is not tried for a while, whatever the memory. All ranks have seen the same
 * attempts in the same collectives, and the two ends of messages in those, so all do alike.
 */
static inline bool task_backs_off(const rondo_comm *comm, const struct task *task)
{
    return comm_attempts(comm, task->key.collective, task->key.root)->backoff &&
           (comm->settings.automatic || collective_is_pair(task->key.collective)) &&
           !task->key.algorithm;
}
/* Make the task's choice, and bind its execution to that. Nothing is begun. */
rondo_result task_prepare(rondo_comm *comm, struct task *task);
/* Start a task that is new. It runs afterwards, unless that is an error. */
void task_start(struct batch *batch, struct task *task);
/* Start a task whose choice is made, and its execution bound to that. It runs afterwards; only a
 * backend that is a device may refuse it. */
rondo_result task_begin(rondo_comm *comm, struct task *task);
/* Write down that the task has begun. */
static inline void task_record(rondo_comm *comm, struct task *task)
{
    if (comm->recorder)
        task->recorded =
            recorder_begin(comm->recorder, task->numbered ? comm->calls : 0, &task->choice->kind);
}
/* React to the state that advancing the task led to; true if it moved. */
bool task_react(struct batch *batch, struct task *task, enum exec_state state);
/* The reaction to EXEC_DONE. */
void task_end(struct batch *batch, struct task *task);

#endif
