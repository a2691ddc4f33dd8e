/* SPDX-License-Identifier: BSD-3-Clause */
/* repeat.c - the short way of a repeated call, see repeat.h. */
#include "comm/engine/repeat.h"
#include "comm/engine/run.h"
#include "comm/failure/network.h"

#include "base/cancel.h"
#include "base/collective.h"

static bool is_same(const rondo_call *a, const rondo_call *b)
{
    return a->input == b->input && a->output == b->output && a->count == b->count &&
           a->collective == b->collective && a->type == b->type && a->op == b->op &&
           a->root == b->root && a->algorithm == b->algorithm;
}

/* Only where no device takes part, and nothing that may mean something else by the next time. */
static bool may_repeat(const rondo_comm *comm, const rondo_call *call, const struct task *task)
{
    return !comm->gpu && !call->algorithm && !task->again && !task->made.handle &&
           !collective_is_pair(call->collective);
}

void repeat_note(const struct batch *batch)
{
    rondo_comm *comm = batch->comm;
    struct repeat *repeat = comm->repeat;
    const struct task *task = batch->tasks;

    if (task == &repeat->task)
        return;
    if (!is_same(&repeat->call, batch->call)) {
        repeat->call = *batch->call;
        repeat->ready = false;
        atomic_store_explicit(&repeat->input, batch->call->input, memory_order_relaxed);
    } else if (may_repeat(comm, batch->call, task)) {
        repeat->task = *task;
        if (task->execution.op)
            repeat->task.execution.op = &repeat->task.op;
        repeat->batch = (struct batch){.comm = comm, .tasks = &repeat->task, .count = 1};
        repeat->made = comm->choices.made;
        repeat->ready = true;
    }
}

/* Is it the call that is ready, and has nothing happened that it depends on? The turn is ours. */
static bool fits(const rondo_comm *comm, const struct repeat *repeat, const rondo_call *call)
{
    const struct task *task = &repeat->task;

    return repeat->ready && is_same(&repeat->call, call) && repeat->made == comm->choices.made &&
           task->choice->valid && !task->again &&
           task->key.no_peer_memory == task_rests(comm, task);
}

static bool is_under_way(enum exec_state state)
{
    return state == EXEC_MOVED || state == EXEC_BLOCKED;
}

/* To the end, or for as long as a line takes from one core to another. */
static enum exec_state advance(const rondo_comm *comm, struct execution *x)
{
    enum exec_state state = exec_advance(x);

    for (int i = 0; is_under_way(state) && i < POLL_ROUNDS && comm->crowd == 1; i++) {
        exec_poll(x, POLL_LOOKS);
        state = exec_advance(x);
    }
    return state;
}

/* As advance(), over networks: look at them as often as a call does before it sleeps. Errors found
 * here are left to run_batches(), which looks for them first. */
static enum exec_state advance_apart(rondo_comm *comm, struct execution *x)
{
    CANCEL_LATER();
    enum exec_state state = exec_advance(x);

    for (int i = 0; is_under_way(state) && i < comm->network_rounds; i++) {
        bool moved;

        if (networks_progress(comm, &moved))
            return EXEC_BLOCKED;
        if (moved || exec_poll(x, 1))
            state = exec_advance(x);
    }
    return state;
}

/* Is the batch over? No message is left, and none of ours waits to be sent. */
static bool is_over(rondo_comm *comm, const struct batch *batch)
{
    return !batch->left && !batch->result && (!networks_any(comm) || networks_flushed(comm, NULL));
}

/* Go on with a call that did not end while it was polled: here the thread may sleep. */
static rondo_result run_on(struct batch *batch, enum exec_state state)
{
    CANCEL_LATER();

    if (state != EXEC_DONE)
        task_react(batch, batch->tasks, state);
    return run_batches(batch, 1);
}

bool repeat_run(const rondo_call *call, rondo_result *ret_result)
{
    rondo_comm *comm = call->comm;
    struct repeat *repeat = comm->repeat;
    struct batch *batch = &repeat->batch;
    struct task *task = &repeat->task;
    enum exec_state state = EXEC_BLOCKED;
    unsigned ticket;

    if (atomic_load_explicit(&repeat->input, memory_order_relaxed) != call->input ||
        !turn_take_idle(&comm->turn, &ticket))
        return false;
    if (!fits(comm, repeat, call)) {
        turn_pass(&comm->turn);
        return false;
    }
    batch->ticket = ticket;
    batch->left = 1;
    batch->began = batch->leaving = 0;
    batch->done = false;
    batch->refused = batch->result = RONDO_OK;
    if (task->key.no_peer_memory)
        comm->resting--;
    if (!task_begin(comm, task))
        state = networks_any(comm) ? advance_apart(comm, &task->execution)
                                   : advance(comm, &task->execution);
    if (state == EXEC_DONE)
        task_end(batch, task);
    if (is_over(comm, batch)) {
        turn_pass(&comm->turn);
        *ret_result = RONDO_OK;
    } else {
        *ret_result = run_on(batch, state);
    }
    return true;
}

rondo_result repeat_run_new(const rondo_call *call, struct task *task)
{
    struct batch batch;

    batch_open(&batch, call->comm, task, 1);
    if (call->comm->hands == &thread_hands)
        batch.call = call;
    return run_by_hands(&batch, 1);
}
