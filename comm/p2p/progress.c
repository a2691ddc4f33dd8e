/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.c - the rounds of a rondo_p2p over all routes, and looks at the peers (look.c) where
 * nothing moves: by a thread that waits for a transfer, or else by the one of the rondo_p2p.
 *
 * Messages are tasks of one batch that never ends, which has the turn of the communicator for as
 * long as that is open.
 */
#include "comm/p2p/p2p.h"

#include "base/clock.h"
#include "base/fail.h"
#include "comm/engine/life.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void begin(struct task *task, rondo_collective collective, int peer, void *memory,
                  size_t bytes)
{
    const struct choice_key key = {
        .collective = collective, .type = RONDO_UINT8, .root = peer, .count = bytes};
    bool sends = collective == RONDO_SEND;

    task_init(task, &key, sends ? memory : NULL, sends ? NULL : memory);
    task->made.handle = 0;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

rondo_result progress_send(rondo_p2p *p2p, int peer, const struct p2p_head *head,
                           rondo_transfer *transfer)
{
    struct route *route = &p2p->routes[peer];
    struct parcel *parcel = malloc(sizeof(*parcel));

    if (!parcel)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message to rank %d.", peer);
    *parcel = (struct parcel){.head = *head, .transfer = transfer};
    *route->last = parcel;
    route->last = &parcel->next;
    return RONDO_OK;
}

void progress_await_envelope(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];

    route->behind_in = false;
    begin(p2p_task_from(p2p, peer), RONDO_RECV, peer, &route->in, sizeof(route->in));
}

/* A message from the peer is complete. */
static rondo_result arrived(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];
    bool payload = route->in.kind == P2P_WHOLE || route->in.kind == P2P_LONG;
    rondo_result result;
    void *memory;

    if (route->behind_in) {
        match_payload(p2p, peer);
        progress_await_envelope(p2p, peer);
        return RONDO_OK;
    }
    result = match_envelope(p2p, peer);
    if (result)
        return comm_break(p2p->comm, result, peer);
    if (payload && route->in.bytes) {
        memory = route->to ? route->to->memory : route->kept ? route->kept->payload : route->lost;
        route->behind_in = true;
        begin(p2p_task_from(p2p, peer), RONDO_RECV, peer, memory, (size_t)route->in.bytes);
        return RONDO_OK;
    }
    if (payload)
        match_payload(p2p, peer);
    progress_await_envelope(p2p, peer);
    return RONDO_OK;
}

/* Take the next parcel of the queue; false: there is none. */
static bool send_next(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];

    if (!route->first)
        return false;
    route->out = route->first->head;
    route->behind_out = false;
    begin(p2p_task_to(p2p, peer), RONDO_SEND, peer, &route->out, sizeof(route->out));
    return true;
}

static void drop_parcel(struct route *route)
{
    struct parcel *parcel = route->first;

    route->first = parcel->next;
    if (!route->first)
        route->last = &route->first;
    free(parcel);
}

void progress_end_lost(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];

    while (route->first) {
        if (route->first->transfer)
            match_end_lost(route->first->transfer);
        drop_parcel(route);
    }
    route->held = false;
    exposure_close(comm_exposure(p2p->comm, RONDO_SEND, peer));
}

/* A message to the peer has gone, and its memory is not needed any more. */
static void departed(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];
    rondo_transfer *transfer = route->first->transfer;

    if (transfer && !route->behind_out && route->out.bytes) {
        route->behind_out = true;
        begin(p2p_task_to(p2p, peer), RONDO_SEND, peer, transfer->memory, transfer->room);
        return;
    }
    if (transfer)
        transfer_end(transfer, RONDO_OK);
    drop_parcel(route);
    send_next(p2p, peer);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* True if the task moved. */
static bool advance(rondo_p2p *p2p, struct task *task)
{
    struct batch *batch = &p2p->batch;

    batch->left = 2; /* it never ends, and reclaims after each message what that was sent from */
    if (task->state == TASK_NEW)
        task_start(batch, task);
    if (!batch->result && batch->refused)
        batch->result = comm_break(p2p->comm, batch->refused, p2p->comm->rank);
    if (batch->result || task->state != TASK_RUNNING)
        return true;
    return task_react(batch, task, task->backend->advance(&task->execution));
}

/* True if what is queued to a peer of another host waits for the look that ends it. */
static bool has_parted(const rondo_p2p *p2p, int peer)
{
    return networks_mirror(p2p->comm, peer) && health_has_closed(p2p->comm, peer);
}

/* False: the network has yet to send what it was given for the peer, or has found nobody there. */
static bool is_sent(const rondo_p2p *p2p, int peer)
{
    return !networks_mirror(p2p->comm, peer) ||
           (!health_has_closed(p2p->comm, peer) && !networks_owe(&p2p->comm->networks, peer));
}

/* Advances the first message of the queue to a peer; true if it moved. */
static bool advance_first(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];
    struct task *task = p2p_task_to(p2p, peer);
    bool moved = false;

    if (!route->held) {
        if (task->state == TASK_DONE)
            send_next(p2p, peer);
        moved = advance(p2p, task);
        if (p2p->batch.result || task->state != TASK_DONE)
            return moved;
    }
    route->held = !is_sent(p2p, peer);
    if (!route->held)
        departed(p2p, peer);
    return moved || !route->held;
}

static bool advance_route(rondo_p2p *p2p, int peer)
{
    struct route *route = &p2p->routes[peer];
    bool moved = advance(p2p, p2p_task_from(p2p, peer));

    if (!p2p->batch.result && p2p_task_from(p2p, peer)->state == TASK_DONE)
        p2p->batch.result = arrived(p2p, peer);
    if (!p2p->batch.result && route->first && !has_parted(p2p, peer))
        moved |= advance_first(p2p, peer);
    route->moves |= moved;
    return moved;
}

/* All routes of these peers. */
static bool advance_routes(rondo_p2p *p2p, int first, int last)
{
    rondo_comm *comm = p2p->comm;
    bool moved = false;

    p2p->batch.result = comm_check(comm);
    for (int peer = first; peer <= last && !p2p->batch.result; peer++)
        if (peer != comm->rank)
            moved |= advance_route(p2p, peer);
    if (!p2p->batch.result && !moved && networks_any(comm))
        p2p->batch.result = networks_progress(comm, &moved);
    if (moved)
        p2p->still_since = 0;
    return moved;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool has_work(const rondo_p2p *p2p)
{
    for (int peer = 0; peer < p2p->comm->size; peer++)
        if (p2p->routes[peer].first || p2p->routes[peer].behind_in ||
            (!is_sent(p2p, peer) && !has_parted(p2p, peer)))
            return true;
    return p2p->pending;
}

static void end_all(struct transfers *list, rondo_result result)
{
    while (list->first) {
        rondo_transfer *transfer = list->first;

        list->first = transfer->next;
        transfer_end(transfer, result);
    }
}

/* The end is closing: what nobody has sent does not come any more, and what nobody has asked for
 * stays with its sender. */
static void give_up(rondo_p2p *p2p)
{
    rondo_result result = match_refuse_offers(p2p);

    if (result)
        comm_break(p2p->comm, result, p2p->comm->rank);
    if (!p2p->receives.first)
        return;
    rondo_fail(RONDO_ERROR_ABORTED, "Rank %d closed its messages while it waited for this one.",
               p2p->comm->rank);
    end_all(&p2p->receives, RONDO_ERROR_ABORTED);
}

/* The communicator is broken: everything ends with its error. */
static void fail(rondo_p2p *p2p)
{
    rondo_result result = p2p->batch.result;

    p2p->failed = result;
    snprintf(p2p->sentence, sizeof(p2p->sentence), "%s", fail_sentence());
    end_all(&p2p->receives, result);
    end_all(&p2p->probes, result);
    end_all(&p2p->accepted, result);
    end_all(&p2p->offered, result);
    for (int peer = 0; peer < p2p->comm->size; peer++) {
        struct route *route = &p2p->routes[peer];

        if (route->to)
            transfer_end(route->to, result);
        if (route->kept && route->kept->taker)
            transfer_end(route->kept->taker, result);
        free(route->lost);
        route->to = NULL;
        route->kept = NULL;
        route->lost = NULL;
        route->behind_in = false;
        while (route->first) {
            if (route->first->transfer)
                transfer_end(route->first->transfer, result);
            drop_parcel(route);
        }
    }
    pthread_cond_broadcast(&p2p->over);
}

/* One pause without the lock; true if it is time to look after peers. */
static bool pause_round(rondo_p2p *p2p, struct waiter *waiter)
{
    bool looks;

    lock_give(&p2p->lock);
    looks =
        networks_any(p2p->comm) ? networks_pause(p2p->comm, waiter, true) : waiter_pause(waiter);
    lock_take(&p2p->lock);
    return looks;
}

/* Give the lock to who wants it. */
static void let_in(rondo_p2p *p2p)
{
    if (!atomic_load_explicit(&p2p->knocks, memory_order_relaxed))
        return;
    lock_give(&p2p->lock);
    sched_yield();
    lock_take(&p2p->lock);
}

/* If the communicator is broken, all transfers end with its error. */
static void settle(rondo_p2p *p2p)
{
    if (!p2p->batch.result)
        return;
    while (!leave_done(&p2p->batch))
        sched_yield();
    leave_unexposed(p2p->comm);
    fail(p2p);
}

bool progress_peers(rondo_p2p *p2p, int first, int last)
{
    bool moved = advance_routes(p2p, first, last);

    settle(p2p);
    return moved && !p2p->failed;
}

/* Look at peers if the last time is a while ago. */
static void look_in_time(rondo_p2p *p2p, double *last)
{
    double now = clock_seconds();

    if (now - *last < LOOK_PEERS * p2p->comm->tuning.wait.ranks_per_core)
        return;
    *last = now;
    p2p_look_after(p2p, now);
}

void progress_glance(rondo_p2p *p2p)
{
    progress_peers(p2p, 0, p2p->comm->size - 1);
    if (p2p->failed)
        return;
    look_in_time(p2p, &p2p->glanced);
    settle(p2p);
}

/* Now and then between rounds in which something moves, which may go on for ever: look at networks
 * and peers, as a round does in which nothing moves. */
static void interrupt_rounds(rondo_p2p *p2p)
{
    enum { ROUNDS = 16 }; /* to look at the clock costs a tenth of a round */
    bool moved;

    if (++p2p->busy % ROUNDS || p2p->batch.result)
        return;
    look_in_time(p2p, &p2p->interrupted);
    /* After the look: what comes by it belongs to the next round. */
    if (!p2p->batch.result && networks_any(p2p->comm))
        p2p->batch.result = networks_progress(p2p->comm, &moved);
}

void progress_round(rondo_p2p *p2p, struct waiter *waiter)
{
    unsigned before = p2p->looks;

    if (advance_routes(p2p, 0, p2p->comm->size - 1)) {
        waiter_reset(waiter);
        interrupt_rounds(p2p);
    } else if (!p2p->batch.result) {
        bool looks = pause_round(p2p, waiter);

        if (p2p->failed)
            return; /* another thread has made a round meanwhile */
        /* Another look meanwhile was the last that this round is good for. */
        if (looks && p2p->looks == before)
            p2p_look_after(p2p, waiter->now);
    }
    settle(p2p);
    let_in(p2p);
}

void progress_hand_over(rondo_p2p *p2p)
{
    if (has_work(p2p) || p2p->closing)
        pthread_cond_signal(&p2p->posted);
}

/*
 * Waits for work. Peers send although this rank waits for nothing, and cannot wake it. So it takes
 * their messages every LOOK_PEERS, and less often the longer none has come.
 */
static void idle(rondo_p2p *p2p, double *seconds)
{
    struct timespec until =
        timespec_of(clock_seconds() + *seconds * p2p->comm->tuning.wait.ranks_per_core);
    bool moved;

    if (lock_wait_until(&p2p->lock, &p2p->posted, &until)) {
        *seconds = LOOK_PEERS;
        /* Somebody who is about to send hears first of a peer that has closed its end. An error
         * has broken the communicator, which the next round finds. */
        if (networks_any(p2p->comm))
            (void)networks_progress(p2p->comm, &moved);
        return;
    }
    *seconds = fmin(2 * *seconds, LOOK_UNASKED);
    while (!p2p->driven && !p2p->closing && !p2p->pending &&
           progress_peers(p2p, 0, p2p->comm->size - 1)) {
        *seconds = LOOK_PEERS;
        interrupt_rounds(p2p);
        let_in(p2p);
    }
}

void *progress_run(void *argument)
{
    rondo_p2p *p2p = argument;
    struct wait_policy prompt = p2p->comm->tuning.wait;
    double seconds = LOOK_PEERS;
    struct waiter waiter;

    /* A message that is posted while this thread dozes has not waited yet. */
    prompt.doze_part = 0;
    lock_take(&p2p->lock);
    waiter_init(&waiter, &prompt);
    while (!p2p->failed) {
        if (p2p->closing)
            give_up(p2p);
        if (has_work(p2p) && !p2p->driven) {
            progress_round(p2p, &waiter);
        } else if (p2p->closing && !p2p->driven) {
            break;
        } else {
            idle(p2p, &seconds);
            waiter_reset(&waiter);
        }
    }
    lock_give(&p2p->lock);
    turn_pass(&p2p->comm->turn);
    return NULL;
}
