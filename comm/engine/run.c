/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - the progress loop: advance every batch until all are done; when nothing moves, wait
 * politely (wait.c) and now and then look whether it ever will (health.c).
 */
#include "comm/engine/run.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/log.h"
#include "comm/engine/choose.h"
#include "comm/engine/reach.h"
#include "comm/engine/repeat.h"
#include "comm/failure/blame.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"
#include "comm/failure/mismatch.h"
#include "comm/failure/network.h"
#include "comm/state/wait.h"

#include <math.h>
#include <string.h>

static bool is_pair(const struct task *task)
{
    return collective_is_pair(task->key.collective);
}

/* A message waits for earlier ones of the batch in its
 * direction; a collective for earlier collectives. */
static bool may_start(const struct batch *batch, int index)
{
    const struct task *task = &batch->tasks[index];

    for (int i = 0; i < index; i++) {
        const struct task *other = &batch->tasks[i];

        if (other->state == TASK_DONE || is_pair(task) != is_pair(other))
            continue;
        if (!is_pair(task) ||
            (other->key.collective == task->key.collective && other->key.root == task->key.root))
            return false;
    }
    return true;
}

/* Tell the peers on the node what is being called. */
static void show(rondo_comm *comm, const struct choice *choice)
{
    struct board *board = comm->boards[comm->rank];

    board_note(board, comm->calls, &choice->record);
    if (comm->shown == choice && comm->shown_hash == choice->record.fingerprint) {
        board_repeat(board, comm->calls);
        return;
    }
    board_begin(board, comm->calls, &choice->record);
    comm->shown = choice;
    comm->shown_hash = choice->record.fingerprint;
}

enum { ATTEMPTS = 4, REST = 31 };

/*
 * Whether peers can reach the buffers shows in a round of messages, a quarter of what a call of 4
 * KiB takes. After some attempts in vain it is not tried for a while, whatever the memory. All
 * ranks have seen the same attempts in the same collectives, so all do alike.
 */
bool task_may_rest(const rondo_comm *comm, const struct task *task)
{
    return !is_pair(task) && !task->key.algorithm && strcmp(comm->settings.algorithm, "auto") == 0;
}

static void note_attempt(rondo_comm *comm, bool reached)
{
    comm->unreached = reached ? 0 : comm->unreached + 1;
    if (comm->unreached >= ATTEMPTS)
        comm->resting = REST;
}

/* A plain input may be read by peers; it is hidden where slots were found to be quicker. */
static void offer_reads(const rondo_comm *comm, struct task *task)
{
    struct execution *x = &task->execution;

    if (!comm->settings.tries_reads || comm->one_process || x->op || !address_shows_plain_input(x))
        return;
    task->offer = task->choice;
    task->offered = reads_trying(&task->offer->reads) ? clock_seconds() : 0;
    x->unreachable = reads_hide(&task->offer->reads);
    if (x->unreachable)
        address_hide(x);
}

/*
 * Fingerprints depend on all calls of the communicator up to this one, not on this one alone: so
 * whoever has once called something else is found out by the next message that any rank waits for
 * with it, also where nobody waited in the call that differed.
 */
rondo_result task_begin(rondo_comm *comm, struct task *task)
{
    const struct choice *choice = task->choice;
    struct execution *x = &task->execution;
    rondo_result result = RONDO_OK;

    x->fingerprint = choice->hash;
    x->unreachable = false;
    x->past_cache = choice->stores.now;
    task->began = choice->stores.trying ? clock_seconds() : 0;
    if (!task->again)
        task->offer = NULL;
    if (!is_pair(task)) {
        if (!task->again) {
            comm->calls++;
            comm->chain = (comm->chain ^ choice->record.fingerprint) * 0x9e3779b1u + comm->calls;
        }
        x->fingerprint ^= comm->chain;
        show(comm, choice);
    }
    x->fingerprint = link_fingerprint(x->fingerprint);
    if (x->plan->address_messages) {
        x->unreachable = !address_announce(comm, task->input, task->output, x);
        if (!x->unreachable)
            offer_reads(comm, task);
    }
    if (task->hands->begin)
        result = task->hands->begin(comm, task);
    if (result)
        return result;
    exec_start(x);
    task->state = TASK_RUNNING;
    return RONDO_OK;
}

static rondo_result start(rondo_comm *comm, struct task *task)
{
    struct execution *x = &task->execution;
    struct choice *choice;
    rondo_result result;

    task->key.no_peer_memory = task->again || task_rests(comm, task);
    if (task->key.no_peer_memory && !task->again)
        comm->resting--;
    task->key.made = task->made.handle ? &task->made : NULL;
    result = choose(comm, &task->key, &choice);
    if (result)
        return result;
    x->plan = choice->plan;
    x->world = &comm->world;
    x->shape = choice->shape;
    x->op = NULL;
    if (choice->reduces) {
        task->op = choice->op;
        x->op = &task->op;
    }
    x->input = task->input;
    x->output = task->output;
    task->choice = choice;
    return task_begin(comm, task);
}

/*
 * A call that could not start. What every rank finds wrong alike is only that call's error; the
 * others of the batch go on. Anything else leaves peers waiting for messages, so it breaks the
 * communicator.
 */
static void refuse(struct batch *batch, struct task *task, rondo_result result)
{
    if (result != RONDO_ERROR_INVALID && result != RONDO_ERROR_UNSUPPORTED) {
        batch->result = comm_break(batch->comm, result, batch->comm->rank);
        return;
    }
    if (!batch->refused)
        batch->refused = comm_note_error(batch->comm, result);
    task->state = TASK_DONE;
    batch->left--;
}

/* Only what is on trial is timed: reading the clock waits for all loads before it, and the next
 * call can't begin while they are under way. */
static double seconds_since(double began)
{
    return began > 0 ? clock_seconds() - began : INFINITY;
}

/* How long it took tells whether to read across, unless another call has taken the place of the
 * choice of the first attempt. This and the next are not inlined, so that short calls save no
 * registers for them. */
__attribute__((noinline)) static void note_reads(const struct task *task)
{
    const struct execution *x = &task->execution;
    struct choice *offer = task->offer;

    if (offer->valid && offer->plan->collective == x->plan->collective &&
        offer->plan->address_messages && offer->shape.count == x->shape.count)
        reads_note(&offer->reads, x->plan->address_messages > 0, seconds_since(task->offered));
}

/* How long it took tells which way to store, unless another call has taken the choice's place. */
__attribute__((noinline)) static void note_time(const struct task *task)
{
    static const char *const names[STORES_WAYS] = {"through the cache", "into slots past the cache",
                                                   "into outputs past the cache",
                                                   "all past the cache"};
    struct choice *choice = task->choice;

    if (choice->plan == task->execution.plan &&
        choice->shape.count == task->execution.shape.count &&
        stores_note(&choice->stores, seconds_since(task->began)))
        log_debug("%s of %zu elements: stores %s from now on",
                  rondo_collective_name(choice->key.collective), choice->shape.count,
                  names[choice->stores.way]);
}

void task_end(struct batch *batch, struct task *task)
{
    batch->result = leave_well(batch->comm, task);
    if (batch->result)
        return;
    if (stores_matter(&task->choice->stores) && !task->hands->on_device)
        note_time(task);
    if (task->offer)
        note_reads(task);
    if (task->execution.plan->address_messages)
        note_attempt(batch->comm, true);
    task->state = TASK_DONE;
    if (--batch->left)
        networks_settle(batch->comm);
}

bool task_react(struct batch *batch, struct task *task, enum exec_state state)
{
    rondo_result refused;

    switch (state) {
    case EXEC_DONE:
        task_end(batch, task);
        return true;
    case EXEC_MOVED:
        return true;
    case EXEC_BLOCKED:
        return false;
    case EXEC_FALLBACK:
        exposure_close(&batch->comm->exposure);
        note_attempt(batch->comm, false);
        task->again = true;
        refused = start(batch->comm, task);
        if (refused)
            refuse(batch, task, refused);
        return true;
    case EXEC_MISMATCH:
        batch->result = mismatch_found(batch->comm, task);
        return true;
    case EXEC_LEFT:
        batch->result = leave_too(batch->comm);
        return true;
    case EXEC_FAILED:
        batch->result = task->hands->on_device
                            ? comm_break(batch->comm, RONDO_ERROR_SYSTEM, task->execution.blamed)
                            : health_unreadable(batch->comm, task);
        return true;
    }
    return false;
}

/* Advance one task; true if it moved. Errors go to the batch. */
static bool advance_task(struct batch *batch, int index)
{
    struct task *task = &batch->tasks[index];
    rondo_result refused;

    if (task->state == TASK_NEW) {
        if (!may_start(batch, index))
            return false;
        refused = start(batch->comm, task);
        if (refused) {
            refuse(batch, task, refused);
            return true;
        }
    }
    return task_react(batch, task, task->hands->advance(&task->execution));
}

static void batch_close(struct batch *batch)
{
    batch->done = true;
    if (!batch->result)
        batch->result = batch->refused;
    if (batch->call && !batch->result)
        repeat_note(batch);
    turn_pass(&batch->comm->turn);
}

/* Advance the tasks of a batch as far as they come; true if anything moved. */
static bool advance_tasks(struct batch *batch)
{
    bool moved = false;

    batch->result = comm_check(batch->comm);
    for (int i = 0; i < batch->count && !batch->result; i++)
        if (batch->tasks[i].state != TASK_DONE)
            moved |= advance_task(batch, i);
    if (networks_any(batch->comm) && !batch->result && !moved)
        batch->result = networks_progress(batch->comm, &moved);
    return moved;
}

/* Is the batch over? Its tasks are done, and its messages are on their way without our help. */
static bool is_over(const struct batch *batch)
{
    return !batch->left && (!networks_any(batch->comm) || networks_flushed(batch->comm, NULL));
}

/* Advance all of a batch that can; true if anything moved. */
static bool advance(struct batch *batch)
{
    bool moved = false;

    if (!turn_is(&batch->comm->turn, batch->ticket))
        return false;
    if (!batch->leaving)
        moved = advance_tasks(batch);
    if (batch->result ? leave_done(batch) : is_over(batch))
        batch_close(batch);
    if (moved)
        batch->began = 0;
    return moved || batch->done;
}

/* Check on the peers of a batch that does not move, as what it waits for may never come; true: the
 * batch has ended. */
static bool look_after(struct batch *batch, double now)
{
    if (batch->done || batch->leaving || !turn_is(&batch->comm->turn, batch->ticket))
        return false;
    if (!batch->began)
        batch->began = now;
    blame_look(batch, now);
    for (int i = 0; i < batch->count && !batch->result; i++)
        if (batch->tasks[i].state == TASK_RUNNING)
            batch->result = health_check(batch->comm, &batch->tasks[i], now - batch->began);
    if (!batch->left)
        batch->result = health_flush(batch->comm, now - batch->began);
    if (batch->result && leave_done(batch))
        batch_close(batch);
    return batch->done;
}

/* Does the batch wait for a rank of this host? */
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

/*
 * A pause, and going through all of the call once more, take a fifth of what a line's journey does.
 * So first flags alone are looked at; not where ranks share cores, as then a peer may need this one
 * to get on.
 */
static bool poll_batch(const struct batch *batch, struct waiter *waiter)
{
    const struct task *task = &batch->tasks[0];

    if (waiter->rounds >= POLL_ROUNDS || waiter->crowd > 1 || batch->count > 1 ||
        task->state != TASK_RUNNING || task->hands->on_device)
        return false;
    waiter->rounds++;
    return exec_poll(&task->execution, POLL_LOOKS);
}

/* One pause of all batches; true if it is time to look after them. */
static bool pause_batches(struct batch *batches, int count, struct waiter *waiter)
{
    if (count == 1 && poll_batch(batches, waiter))
        return false;
    if (count > 1 || !networks_any(batches[0].comm) ||
        !turn_is(&batches[0].comm->turn, batches[0].ticket))
        return waiter_pause(waiter);
    return networks_pause(batches[0].comm, waiter, waits_locally(&batches[0]));
}

void batch_open(struct batch *batch, rondo_comm *comm, struct task *tasks, int count)
{
    *batch = (struct batch){.comm = comm, .tasks = tasks, .count = count, .left = count};
    for (int i = 0; i < count; i++)
        if (!tasks[i].hands)
            tasks[i].hands = &thread_hands;
    batch->ticket = turn_take(&comm->turn);
}

rondo_result run_batches(struct batch *batches, int count)
{
    rondo_result result = RONDO_OK;
    struct waiter waiter;
    int left = count;

    waiter_init(&waiter, batches[0].comm->spin_rounds);
    waiter.crowd = batches[0].comm->crowd;
    while (left) {
        bool moved = false;

        for (int i = 0; i < count; i++) {
            if (batches[i].done)
                continue;
            moved |= advance(&batches[i]);
            left -= batches[i].done;
        }
        if (moved)
            waiter_reset(&waiter);
        else if (pause_batches(batches, count, &waiter))
            for (int i = 0; i < count; i++)
                left -= look_after(&batches[i], waiter.now);
    }
    for (int i = 0; i < count && !result; i++)
        result = batches[i].result;
    return result;
}

rondo_result run_task(rondo_comm *comm, struct task *task)
{
    struct batch batch;

    batch_open(&batch, comm, task, 1);
    return run_batches(&batch, 1);
}

/* Batches of one process have the same hands, or only this thread. */
rondo_result run_by_hands(struct batch *batches, int count)
{
    const struct hands *hands = &thread_hands;

    for (int i = 0; i < count && !hands->on_device; i++)
        hands = batches[i].comm->hands;
    return hands->run(batches, count);
}

const struct hands thread_hands = {.run = run_batches, .advance = exec_advance};
