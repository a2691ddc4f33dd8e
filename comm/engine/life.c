/* SPDX-License-Identifier: BSD-3-Clause */
/* life.c - see life.h. */
#include "comm/engine/life.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/log.h"
#include "comm/engine/choose.h"
#include "comm/engine/reach.h"
#include "comm/engine/tracing.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"
#include "comm/failure/mismatch.h"
#include "comm/failure/network.h"

#include <math.h>

/* A plain input may be read by peers; it is hidden where slots were found to be quicker, unless the
 * call has named the algorithm, which is that one or none. */
static void offer_reads(const rondo_comm *comm, struct task *task)
{
    struct execution *x = &task->execution;

    if (task->key.algorithm || !comm->tuning.tries_reads || comm->one_process || x->op ||
        !address_shows_plain_input(x))
        return;
    task->offer = task->choice;
    task->offered = task->offer->reads.trying ? clock_seconds() : 0;
    x->unreachable = task->offer->reads.now == READS_STAGED;
    if (x->unreachable)
        address_hide(x);
}

/*
 * Count a collective, and tell the peers on the node what is being called. Returns what its
 * fingerprint depends on besides itself: all calls of the communicator up to this one. So whoever
 * has once called something else is found out by the next message that any rank waits for with it,
 * also where nobody waited in the call that differed.
 */
static uint32_t show(rondo_comm *comm, const struct choice *choice, bool again)
{
    uint32_t fingerprint = choice->kind.record.fingerprint;
    bool shown = comm->shown == choice && comm->shown_hash == fingerprint;

    if (!again) {
        comm->calls++;
        comm->chain = (comm->chain ^ fingerprint) * 0x9e3779b1u + comm->calls;
    }
    call_header_begin(&comm->status_pages[comm->rank]->call, comm->calls, &choice->kind.record,
                      shown);
    comm->shown = choice;
    comm->last_algorithm = choice->kind.algorithm;
    comm->shown_hash = fingerprint;
    return comm->chain;
}

rondo_result task_begin(rondo_comm *comm, struct task *task)
{
    const struct choice *choice = task->choice;
    struct execution *x = &task->execution;
    rondo_result result = RONDO_OK;

    x->fingerprint = choice->hash;
    x->unreachable = false;
    x->past_cache = choice->stores.now;
    task->began =
        choice->stores.trying && !collective_is_pair(task->key.collective) ? clock_seconds() : 0;
    if (task->key.no_peer_memory && !task->again)
        comm_attempts(comm, task->key.collective, task->key.root)->backoff--;
    if (!task->again)
        task->offer = NULL;
    if (task->numbered)
        x->fingerprint ^= show(comm, choice, task->again);
    x->fingerprint = link_fingerprint(x->fingerprint);
    if (comm->world.trace)
        trace_call(comm, task);
    if (x->plan->address_signals) {
        x->unreachable = !address_announce(comm, task->input, task->output, x);
        if (!x->unreachable)
            offer_reads(comm, task);
    }
    if (task->backend->begin)
        result = task->backend->begin(comm, task);
    if (result)
        return result;
    exec_start(x);
    task->state = TASK_RUNNING;
    return RONDO_OK;
}

rondo_result task_prepare(rondo_comm *comm, struct task *task)
{
    struct execution *x = &task->execution;
    struct choice *choice;
    rondo_result result;

    task->key.no_peer_memory = task->again || task_backs_off(comm, task);
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
    task->numbered = !collective_is_pair(task->key.collective);
    return RONDO_OK;
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

void task_start(struct batch *batch, struct task *task)
{
    rondo_result result = task_prepare(batch->comm, task);

    if (!result)
        result = task_begin(batch->comm, task);
    if (result)
        refuse(batch, task, result);
    else
        task_record(batch->comm, task);
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
        plan_reaches(offer->plan) && offer->shape.count == x->shape.count)
        trial_note(&offer->reads, plan_reaches(x->plan) ? READS_ACROSS : READS_STAGED,
                   seconds_since(task->offered));
}

/* Returns how long the call took. A sender is through before the receiver has the message, and what
 * a way to store is worth shows when the next one can go: so a message takes from the end of the
 * one before to its own. */
static double seconds_of(const struct task *task)
{
    struct choice *choice = task->choice;
    double before = choice->ended;

    if (!collective_is_pair(task->key.collective))
        return seconds_since(task->began);
    if (!choice->stores.trying)
        return INFINITY;
    choice->ended = clock_seconds();
    return choice->ended - before;
}

/* How long it took tells which way to store, unless another call has taken the choice's place. */
__attribute__((noinline)) static void note_time(const struct task *task)
{
    static const char *const names[TRIAL_WAYS] = {"through the cache", "into slots past the cache",
                                                  "into outputs past the cache",
                                                  "all past the cache"};
    struct choice *choice = task->choice;

    if (choice->plan == task->execution.plan &&
        choice->shape.count == task->execution.shape.count &&
        trial_note(&choice->stores, task->execution.past_cache, seconds_of(task)))
        log_debug("%s of %zu elements: stores %s from now on",
                  rondo_collective_name(choice->key.collective), choice->shape.count,
                  names[choice->stores.way]);
}

static void note_attempt(const rondo_comm *comm, const struct task *task, bool in_vain)
{
    attempts_note(comm_attempts(comm, task->key.collective, task->key.root), in_vain);
}

void task_end(struct batch *batch, struct task *task)
{
    if (task->execution.output != task->output)
        address_return(&task->execution, task->output);
    batch->result = leave_well(batch->comm, task);
    if (batch->result)
        return;
    if (batch->comm->recorder)
        recorder_end(batch->comm->recorder, task->recorded, RECORDER_DONE);
    if (batch->comm->world.trace)
        trace_call_end(batch->comm, task);
    if (trial_matters(&task->choice->stores) && !task->backend->on_device)
        note_time(task);
    if (task->offer)
        note_reads(task);
    if (plan_reaches(task->execution.plan))
        note_attempt(batch->comm, task, false);
    task->state = TASK_DONE;
    if (--batch->left)
        networks_reclaim(batch->comm);
}

/* Peers' memory is out of reach: start once more, in a way that does without. */
static void start_again(struct batch *batch, struct task *task)
{
    if (task->execution.plan->address_signals)
        exposure_close(comm_exposure(batch->comm, task->key.collective, task->key.root));
    batch->result = comm_check(batch->comm); /* perhaps it is this rank that could not reach it */
    if (batch->result)
        return;
    note_attempt(batch->comm, task, true);
    if (batch->comm->recorder)
        recorder_end(batch->comm->recorder, task->recorded, RECORDER_REPEATED);
    task->again = true;
    task->state = TASK_NEW;
    task_start(batch, task);
}

bool task_react(struct batch *batch, struct task *task, enum exec_state state)
{
    switch (state) {
    case EXEC_DONE:
        task_end(batch, task);
        return true;
    case EXEC_MOVED:
        return true;
    case EXEC_BLOCKED:
        return false;
    case EXEC_FALLBACK:
        start_again(batch, task);
        return true;
    case EXEC_MISMATCH:
        batch->result = mismatch_found(batch->comm, task);
        return true;
    case EXEC_LEFT:
        batch->result = leave_too(batch->comm);
        return true;
    case EXEC_FAILED:
        batch->result = task->backend->on_device
                            ? comm_break(batch->comm, RONDO_ERROR_SYSTEM, task->execution.blamed)
                            : health_unreadable(batch->comm, task);
        return true;
    }
    return false;
}
