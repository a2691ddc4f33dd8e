/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_path.c - the short way of a repeated call, see fast_path.h. */
#include "comm/engine/fast_path.h"
#include "comm/engine/life.h"
#include "comm/engine/run.h"

#include "base/collective.h"

static bool is_same(const rondo_call *a, const rondo_call *b)
{
    return a->input == b->input && a->output == b->output && a->count == b->count &&
           a->collective == b->collective && a->type == b->type && a->op == b->op &&
           a->root == b->root && a->algorithm == b->algorithm;
}

/* Only where no device takes part, and nothing that may mean something else by the next time. */
static bool may_take_fast_path(const rondo_comm *comm, const rondo_call *call,
                               const struct task *task)
{
    return !comm_gpu(comm) && !call->algorithm && !task->again && !task->made.handle;
}

static struct fast_path *fast_path_of(const rondo_comm *comm, rondo_collective collective)
{
    if (!collective_is_pair(collective))
        return comm->fast_path;
    return &comm->fast_path[collective == RONDO_SEND ? 1 : 2];
}

void fast_path_note(const struct batch *batch)
{
    rondo_comm *comm = batch->comm;
    struct fast_path *fast_path = fast_path_of(comm, batch->call->collective);
    const struct task *task = batch->tasks;

    if (task == &fast_path->task)
        return;
    if (!is_same(&fast_path->call, batch->call)) {
        fast_path->call = *batch->call;
        fast_path->ready = false;
        atomic_store_explicit(&fast_path->input, batch->call->input, memory_order_relaxed);
    } else if (may_take_fast_path(comm, batch->call, task)) {
        fast_path->task = *task;
        if (task->execution.op)
            fast_path->task.execution.op = &fast_path->task.op;
        fast_path->made = comm->choices.made;
        fast_path->ready = true;
    }
}

bool fast_path_run(const rondo_call *call, rondo_result *ret_result)
{
    rondo_comm *comm = call->comm;
    struct fast_path *fast_path = fast_path_of(comm, call->collective);
    struct task *task = &fast_path->task;
    /* Its end is read when the turn is passed on, and the communicator may be closed. */
    struct batch batch = {.comm = comm, .tasks = task, .count = 1, .left = 1};

    if (atomic_load_explicit(&fast_path->input, memory_order_relaxed) != call->input ||
        !turn_take_idle(&comm->turn, &batch.ticket))
        return false;
    /* The turn is ours. Is it the call that is ready, and has nothing happened that it depends
     * on? */
    if (!fast_path->ready || !is_same(&fast_path->call, call) ||
        fast_path->made != comm->choices.made || !task->choice->valid || task->again ||
        task->key.no_peer_memory != task_backs_off(comm, task)) {
        turn_pass(&comm->turn);
        return false;
    }
    *ret_result = run_ready(&batch);
    return true;
}

rondo_result fast_path_run_new(const rondo_call *call, struct task *task)
{
    struct batch batch;

    batch_open(&batch, call->comm, task, 1);
    if (comm_backend(call->comm) == &thread_backend)
        batch.call = call;
    return run_by_backend(&batch, 1);
}
