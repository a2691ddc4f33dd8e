/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - the progress loop: advance every batch until all are done; when nothing moves, wait
 * politely (wait.c) and now and then look whether it ever will (health.c).
 */
#include "comm/engine/run.h"

#include "base/cancel.h"
#include "base/collective.h"
#include "comm/engine/life.h"
#include "comm/engine/fast_path.h"
#include "comm/engine/post.h"
#include "comm/failure/blame.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"
#include "comm/failure/network.h"

#include <string.h>

/* A send waits for earlier sends of the batch to the same peer, a receive for earlier receives from
 * it, and a collective for earlier collectives. */
static bool may_start(const struct batch *batch, int index)
{
    const struct choice_key *key = &batch->tasks[index].key;
    bool pair = collective_is_pair(key->collective);

    for (int i = 0; i < index; i++) {
        const struct choice_key *other = &batch->tasks[i].key;

        if (batch->tasks[i].state == TASK_DONE || pair != collective_is_pair(other->collective))
            continue;
        if (!pair || (other->collective == key->collective && other->root == key->root))
            return false;
    }
    return true;
}

static bool is_under_way(enum exec_state state)
{
    return state == EXEC_MOVED || state == EXEC_BLOCKED;
}

/*
 * Stay with the last task that this thread has to run, for as long as its wait is likely to be
 * short. An error of the networks has broken the communicator, which the next comm_check() finds.
 */
static enum exec_state stay(rondo_comm *comm, struct execution *x, struct waiter *waiter,
                            enum exec_state state)
{
    enum { LOOKS = 64 };
    bool networks = networks_any(comm), moved = false;

    while (is_under_way(state) && (networks ? waiter_looks_again(waiter) : waiter_polls(waiter))) {
        bool came = !networks;

        moved |= state == EXEC_MOVED;
        if (networks && (comm_check(comm) || networks_progress(comm, &came)))
            return EXEC_BLOCKED;
        if (exec_poll(x, networks ? 1 : LOOKS) || came)
            state = exec_advance(x);
    }
    return state == EXEC_BLOCKED && moved ? EXEC_MOVED : state;
}

static bool advance_task(struct batch *batch, int index, struct waiter *waiter)
{
    struct task *task = &batch->tasks[index];
    enum exec_state state;

    if (task->state == TASK_NEW) {
        if (!may_start(batch, index))
            return false;
        task_start(batch, task);
        if (task->state != TASK_RUNNING)
            return true;
    }
    state = task->backend->advance(&task->execution);
    if (waiter && batch->left == 1 && !task->backend->on_device)
        state = stay(batch->comm, &task->execution, waiter, state);
    return task_react(batch, task, state);
}

static bool advance_tasks(struct batch *batch, struct waiter *waiter)
{
    bool moved = false;

    /* Whoever sets an error has broken the communicator, so this finds it again each time. */
    batch->result = comm_check(batch->comm);
    for (int i = 0; i < batch->count && !batch->result; i++)
        if (batch->tasks[i].state != TASK_DONE)
            moved |= advance_task(batch, i, waiter);
    if (!batch->result && !moved && networks_any(batch->comm))
        batch->result = networks_progress(batch->comm, &moved);
    return moved;
}

/* Messages between two ranks are no concern of the others, so their results are each rank's own. A
 * batch without tasks is a call that was refused, which may have been a collective. */
static bool concerns_all(const struct batch *batch)
{
    int pairs = 0;

    while (pairs < batch->count && collective_is_pair(batch->tasks[pairs].key.collective))
        pairs++;
    return pairs < batch->count || !batch->count;
}

static void batch_close(struct batch *batch)
{
    batch->done = true;
    if (!batch->result)
        batch->result = batch->refused;
    if (batch->result)
        leave_unexposed(batch->comm); /* it has left, or a device refused it */
    if (batch->comm->settle && concerns_all(batch))
        batch->result = batch->comm->settle(batch->comm, batch->result);
    if (batch->call && !batch->result)
        fast_path_note(batch);
    turn_pass(&batch->comm->turn);
}

/* True if its tasks are done, and its messages are on their way without our help. */
static bool is_over(const struct batch *batch)
{
    return !batch->left && (!networks_any(batch->comm) || networks_flushed(batch->comm, NULL));
}

bool batch_advance(struct batch *batch, struct waiter *waiter)
{
    bool moved = false;

    if (!batch->leaving)
        moved = advance_tasks(batch, waiter);
    if (batch->result ? leave_done(batch) : is_over(batch))
        batch_close(batch);
    if (moved)
        batch->still_since = 0;
    return moved || batch->done;
}

/* Advance a batch, or the posted call whose turn comes before; true if anything moved. */
static bool advance(struct batch *batch, struct waiter *waiter)
{
    struct rondo_request *before;
    bool moved;

    if (turn_is(&batch->comm->turn, batch->ticket))
        return batch_advance(batch, waiter);
    before = post_take(batch->comm);
    if (!before)
        return false;
    moved = batch_advance(&before->batch, waiter);
    post_give(before);
    return moved;
}

bool batch_look_after(struct batch *batch, double now)
{
    if (batch->done || batch->leaving)
        return false;
    if (!turn_is(&batch->comm->turn, batch->ticket)) {
        struct rondo_request *before = post_take(batch->comm);

        if (before) {
            (void)batch_look_after(&before->batch, now);
            post_give(before);
        }
        return false;
    }
    if (!batch->still_since)
        batch->still_since = now;
    blame_look(batch, now);
    for (int i = 0; i < batch->count && !batch->result; i++)
        if (batch->tasks[i].state == TASK_RUNNING)
            batch->result = health_check(batch->comm, &batch->tasks[i], now - batch->still_since);
    if (!batch->left)
        batch->result = health_flush(batch->comm, now - batch->still_since);
    if (batch->result && leave_done(batch))
        batch_close(batch);
    return batch->done;
}

/* True if the batch waits for a rank of this host. */
static bool waits_locally(const struct batch *batch)
{
    const rondo_comm *comm = batch->comm;

    for (int i = 0; i < batch->count; i++) {
        const struct execution *x = &batch->tasks[i].execution;

        if (batch->tasks[i].state != TASK_RUNNING)
            continue;
        for (int k = 0; k < x->plan->programs; k++)
            if (!x->programs[k].done && x->programs[k].blamed != comm->rank &&
                comm->processes[x->programs[k].blamed])
                return true;
    }
    return false;
}

/* One pause of all batches; true if it is time to look after them. */
static bool pause_batches(struct batch *batches, int count, struct waiter *waiter)
{
    if (count > 1 || !networks_any(batches[0].comm) ||
        !turn_is(&batches[0].comm->turn, batches[0].ticket))
        return waiter_pause(waiter);
    return networks_pause(batches[0].comm, waiter, waits_locally(&batches[0]));
}

void batch_open_at(struct batch *batch, rondo_comm *comm, struct task *tasks, int count,
                   unsigned ticket)
{
    *batch = (struct batch){.comm = comm,
                            .size = comm->size,
                            .rank = comm->rank,
                            .tasks = tasks,
                            .count = count,
                            .left = count,
                            .ticket = ticket};
    for (int i = 0; i < count; i++)
        if (!tasks[i].backend)
            tasks[i].backend = &thread_backend;
}

void batch_open(struct batch *batch, rondo_comm *comm, struct task *tasks, int count)
{
    batch_open_at(batch, comm, tasks, count, turn_take(&comm->turn));
}

/* Keeps the sentence of a batch as soon as it has an error: others may fail before it ends. */
static void keep_error(struct first_error *first, const struct batch *batches, int index)
{
    rondo_result result = batches[index].result ? batches[index].result : batches[index].refused;

    if (!first || !result || index > first->index ||
        (index == first->index && result == first->result))
        return;
    first->index = index;
    first->result = result;
    memcpy(first->sentence, fail_sentence(), strlen(fail_sentence()) + 1);
}

int batches_round(struct batch *batches, int count, struct waiter *waiter,
                  struct first_error *first)
{
    bool moved = false;
    int left = 0;

    for (int i = 0; i < count; i++) {
        if (!batches[i].done) {
            moved |= advance(&batches[i], count == 1 ? waiter : NULL);
            keep_error(first, batches, i);
        }
        left += !batches[i].done;
    }
    if (moved)
        waiter_reset(waiter);
    else if (pause_batches(batches, count, waiter))
        for (int i = 0; i < count; i++) {
            left -= batch_look_after(&batches[i], waiter->now);
            keep_error(first, batches, i);
        }
    return left;
}

rondo_result run_batches(struct batch *batches, int count)
{
    CANCEL_LATER();
    /* A copy: a communicator may be closed when its batch has ended, before the others. */
    struct wait_policy policy = batches[0].comm->tuning.wait;
    struct first_error first;
    struct waiter waiter;

    first.index = count;
    waiter_init(&waiter, &policy);
    while (batches_round(batches, count, &waiter, count > 1 ? &first : NULL)) {
    }
    if (count == 1)
        return batches[0].result;
    return first.index == count ? RONDO_OK : rondo_fail(first.result, "%s", first.sentence);
}

/* These do what exec_advance(), stay() and task_react() do, for a thread that may not be cancelled
 * where those sleep, or use sockets. None is inlined, so that short calls save no registers for
 * them. */
__attribute__((noinline)) static enum exec_state advance_later(struct execution *x)
{
    CANCEL_LATER();

    return exec_advance(x);
}

__attribute__((noinline)) static enum exec_state
stay_later(rondo_comm *comm, struct execution *x, struct waiter *waiter, enum exec_state state)
{
    CANCEL_LATER();

    return stay(comm, x, waiter, state);
}

__attribute__((noinline)) static void react_later(struct batch *batch, struct task *task,
                                                  enum exec_state state)
{
    CANCEL_LATER();

    task_react(batch, task, state);
}

/* Bytes per block up to which a call's first steps take a few microseconds. */
enum { RECORD_BEHIND = 32768 };

/* Takes the first steps of a task. A short one is written down while its messages travel from core
 * to core. */
static inline enum exec_state start_ready(rondo_comm *comm, struct task *task)
{
    struct execution *x = &task->execution;
    bool is_short = x->shape.count * x->shape.element <= RECORD_BEHIND;
    enum exec_state state;

    (void)task_begin(comm, task); /* this thread refuses none */
    if (!is_short)
        task_record(comm, task);
    state = networks_any(comm) ? advance_later(x) : exec_advance(x);
    if (is_short)
        task_record(comm, task);
    return state;
}

/* Stays with the only task that is left, and ends the batch with it. */
static inline rondo_result finish_ready(struct batch *batch, struct task *task,
                                        enum exec_state state)
{
    rondo_comm *comm = batch->comm;
    struct execution *x = &task->execution;

    if (state != EXEC_DONE) {
        struct waiter waiter;

        waiter_init(&waiter, &comm->tuning.wait);
        state = networks_any(comm) ? stay_later(comm, x, &waiter, state)
                                   : stay(comm, x, &waiter, state);
    }
    if (state == EXEC_DONE)
        task_end(batch, task);
    else
        react_later(batch, task, state);
    if (!batch->result && is_over(batch))
        batch_close(batch);
    return batch->done ? batch->result : run_batches(batch, 1);
}

/* Most calls end here, and are not made longer by what only others need. */
rondo_result run_ready(struct batch *batch)
{
    return finish_ready(batch, batch->tasks, start_ready(batch->comm, batch->tasks));
}

/* A message waits for no other one of its batch, so all can begin at once. It breaks the
 * communicator if it fails, so those behind it need not begin. */
rondo_result run_ready_messages(struct batch *batch)
{
    struct task *task = batch->tasks;
    enum exec_state state;

    for (int i = 0; i < batch->count && !batch->result; i++, task++) {
        state = start_ready(batch->comm, task);
        if (batch->left == 1)
            return finish_ready(batch, task, state);
        if (state == EXEC_DONE)
            task_end(batch, task);
        else
            react_later(batch, task, state);
    }
    return run_batches(batch, 1);
}

rondo_result run_task(rondo_comm *comm, struct task *task)
{
    struct batch batch;

    batch_open(&batch, comm, task, 1);
    return run_batches(&batch, 1);
}

/* Batches of one process have the same backend, or only this thread. */
rondo_result run_by_backend(struct batch *batches, int count)
{
    const struct backend *backend = &thread_backend;

    for (int i = 0; i < count && !backend->on_device; i++)
        backend = comm_backend(batches[i].comm);
    return backend->run(batches, count);
}

const struct backend thread_backend = {.run = run_batches, .advance = exec_advance};
