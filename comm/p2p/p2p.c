/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.c - the public functions of rondo/p2p.h: what a caller begins, waits for and closes. */
#include "comm/p2p/p2p.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/network.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

/* ---- Opening and closing --------------------------------------------------------------------- */

static void enter(rondo_p2p *p2p)
{
    atomic_fetch_add_explicit(&p2p->knocks, 1, memory_order_relaxed);
    lock_take(&p2p->lock);
    atomic_fetch_sub_explicit(&p2p->knocks, 1, memory_order_relaxed);
}

static void free_all(rondo_p2p *p2p)
{
    while (p2p->first) {
        struct unexpected *unexpected = p2p->first;

        p2p->first = unexpected->next;
        free(unexpected->payload);
        free(unexpected);
    }
    if (p2p->comm) {
        p2p->comm->recorder = p2p->recorder;
        p2p->comm->world.trace = p2p->trace;
        rondo_comm_close(p2p->comm);
    }
    free(p2p->routes);
    free(p2p->tasks);
    p2p->comm = NULL;
    p2p->routes = NULL;
    p2p->tasks = NULL;
}

/* Gives the lock, and frees what the last user leaves. */
static void leave(rondo_p2p *p2p)
{
    bool last = --p2p->users == 0;

    lock_give(&p2p->lock);
    if (!last)
        return;
    pthread_cond_destroy(&p2p->posted);
    pthread_cond_destroy(&p2p->over);
    lock_done(&p2p->lock);
    free(p2p);
}

static rondo_result start(rondo_p2p *p2p)
{
    size_t size = (size_t)p2p->comm->size;
    sigset_t all, before;
    int error;

    /* `rondo ps` and traces would show the envelopes that are awaited as calls that hang. */
    p2p->recorder = p2p->comm->recorder;
    p2p->comm->recorder = NULL;
    p2p->trace = p2p->comm->world.trace;
    p2p->comm->world.trace = NULL;
    p2p->routes = calloc(size, sizeof(*p2p->routes));
    p2p->tasks = calloc(2 * size, sizeof(*p2p->tasks));
    if (!p2p->routes || !p2p->tasks)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages between %zu ranks.",
                          size);
    for (int peer = 0; peer < p2p->comm->size; peer++) {
        p2p->routes[peer].last = &p2p->routes[peer].first;
        p2p_task_to(p2p, peer)->state = TASK_DONE;
        progress_await_envelope(p2p, peer);
    }
    batch_open(&p2p->batch, p2p->comm, p2p->tasks, 2 * (int)size);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&p2p->thread, NULL, progress_run, p2p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return RONDO_OK;
    turn_pass(&p2p->comm->turn);
    errno = error;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot start the thread that moves messages");
}

rondo_result rondo_p2p_open(rondo_comm *comm, rondo_p2p **ret_p2p)
{
    CANCEL_LATER();
    rondo_p2p *p2p;
    rondo_result result;

    if (!comm || !ret_p2p)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_p2p_open: needs a communicator and a place for the rondo_p2p.");
    p2p = calloc(1, sizeof(*p2p));
    if (!p2p)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages between ranks.");
    lock_init(&p2p->lock, LOCK_P2P);
    pthread_cond_init(&p2p->posted, NULL);
    lock_init_condition(&p2p->over);
    p2p->users = 1;
    p2p->home = fork_home();
    p2p->last = &p2p->first;
    result = rondo_comm_dup(comm, &p2p->comm);
    if (!result) {
        result = start(p2p);
        if (result)
            rondo_comm_abort(p2p->comm);
    }
    if (result) {
        free_all(p2p);
        lock_take(&p2p->lock);
        leave(p2p);
        return comm_note_error(comm, result);
    }
    *ret_p2p = p2p;
    return RONDO_OK;
}

void rondo_p2p_close(rondo_p2p *p2p)
{
    CANCEL_LATER();

    if (!p2p)
        return;
    if (fork_is_foreign(p2p->home)) {
        fork_keep(p2p);
        return;
    }
    enter(p2p);
    p2p->closing = true;
    pthread_cond_signal(&p2p->posted);
    lock_give(&p2p->lock);
    pthread_join(p2p->thread, NULL);
    free_all(p2p);
    lock_take(&p2p->lock);
    leave(p2p);
}

rondo_result rondo_p2p_abort(rondo_p2p *p2p)
{
    CANCEL_LATER();
    rondo_result result;

    if (!p2p)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_abort: the rondo_p2p is NULL.");
    if (fork_is_foreign(p2p->home))
        return fork_refuse("rondo_p2p_abort", "rondo_p2p");
    result = rondo_comm_abort(p2p->comm);
    enter(p2p);
    pthread_cond_signal(&p2p->posted);
    lock_give(&p2p->lock);
    return result;
}

rondo_result rondo_p2p_set_timeout(rondo_p2p *p2p, double seconds)
{
    CANCEL_LATER();
    rondo_result result;

    if (!p2p)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_set_timeout: the rondo_p2p is NULL.");
    if (fork_is_foreign(p2p->home))
        return fork_refuse("rondo_p2p_set_timeout", "rondo_p2p");
    enter(p2p);
    result = rondo_comm_set_timeout(p2p->comm, seconds);
    p2p_restart_waits(p2p);
    lock_give(&p2p->lock);
    return result;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

struct wish {
    const char *function;
    int peer, tag;
    bool any; /* of both is allowed */
    const void *memory;
    size_t bytes;
};

static rondo_result check(const rondo_p2p *p2p, const struct wish *wish)
{
    int least = wish->any ? -1 : 0;

    if (!p2p)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: the rondo_p2p is NULL.", wish->function);
    if (fork_is_foreign(p2p->home))
        return fork_refuse(wish->function, "rondo_p2p");
    if (wish->peer < least || wish->peer >= p2p->comm->size)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: the %s is %d, but there are ranks 0 to %d.",
                          wish->function, wish->any ? "source" : "peer", wish->peer,
                          p2p->comm->size - 1);
    if (wish->tag < least)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: the tag is %d; tags are 0 to %d.",
                          wish->function, wish->tag, INT_MAX);
    if (wish->bytes && !wish->memory)
        return rondo_fail(RONDO_ERROR_INVALID, "%s: rank %d gave no memory (NULL) for %zu bytes.",
                          wish->function, p2p->comm->rank, wish->bytes);
    return RONDO_OK;
}

/* With the lock held. */
static rondo_result begin_send(rondo_transfer *transfer)
{
    rondo_p2p *p2p = transfer->p2p;
    int peer = transfer->envelope.source;
    struct p2p_head head = {
        .kind = P2P_WHOLE, .tag = transfer->envelope.tag, .bytes = transfer->room};
    rondo_result result;

    if (peer == p2p->comm->rank)
        return match_own(transfer);
    if (transfer->room <= P2P_WHOLE_MOST)
        return progress_send(p2p, peer, &head, transfer);
    head.kind = P2P_OFFER;
    head.number = transfer->number = ++p2p->offers;
    result = progress_send(p2p, peer, &head, NULL);
    if (!result)
        transfers_add(&p2p->offered, transfer);
    return result;
}

/* Only the thread waits for networks, without the lock. */
static bool callers_may_move(const rondo_p2p *p2p)
{
    return !networks_any(p2p->comm);
}

static rondo_result begin(rondo_p2p *p2p, const struct wish *wish, bool sends,
                          rondo_transfer **ret_transfer)
{
    rondo_transfer *transfer = calloc(1, sizeof(*transfer));
    rondo_result result = RONDO_OK;

    if (!transfer)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message.");
    *transfer = (rondo_transfer){.p2p = p2p,
                                 .sends = sends,
                                 .envelope = {wish->peer, wish->tag, wish->bytes},
                                 .memory = (char *)(uintptr_t)wish->memory,
                                 .room = wish->bytes};
    enter(p2p);
    if (p2p->failed)
        result = rondo_fail(p2p->failed, "%s", p2p->sentence);
    if (!result) {
        if (!p2p->pending && !p2p->probers)
            p2p_restart_waits(p2p); /* nobody has looked at peers since the last wait */
        p2p->pending++;
        if (p2p->trace)
            p2p_trace_post(transfer);
        result = sends ? begin_send(transfer) : match_receive(transfer);
        p2p->pending -= result != RONDO_OK;
        if (result && p2p->trace)
            p2p_trace_end(transfer, result);
    }
    if (!result) {
        p2p->users++;
        if (sends && callers_may_move(p2p))
            progress_peers(p2p, wish->peer, wish->peer);
        progress_hand_over(p2p);
        *ret_transfer = transfer;
    }
    lock_give(&p2p->lock);
    if (result)
        free(transfer);
    return result;
}

rondo_result rondo_p2p_send(rondo_p2p *p2p, const void *input, size_t bytes, int peer, int tag,
                            rondo_transfer **ret_transfer)
{
    CANCEL_LATER();
    const struct wish wish = {"rondo_p2p_send", peer, tag, false, input, bytes};
    rondo_result result = check(p2p, &wish);

    if (!result && !ret_transfer)
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_send: no place for the transfer.");
    return result ? result : begin(p2p, &wish, true, ret_transfer);
}

rondo_result rondo_p2p_recv(rondo_p2p *p2p, void *output, size_t bytes, int source, int tag,
                            rondo_transfer **ret_transfer)
{
    CANCEL_LATER();
    const struct wish wish = {"rondo_p2p_recv", source, tag, true, output, bytes};
    rondo_result result = check(p2p, &wish);

    if (!result && !ret_transfer)
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_recv: no place for the transfer.");
    return result ? result : begin(p2p, &wish, false, ret_transfer);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Somebody who waits, up to `seconds` since `began`; negative: for ever. */
struct wait {
    rondo_p2p *p2p;
    double seconds, began;
    bool drives;
    struct waiter waiter;
};

/* The next three with the lock held. Who waits where nobody does makes the rounds: so a message
 * need not wake a thread first, and then its receiver. */
static void wait_begin(struct wait *wait, rondo_p2p *p2p, double seconds)
{
    wait->p2p = p2p;
    wait->seconds = seconds;
    wait->began = clock_seconds();
    wait->drives = !(seconds == 0) && !p2p->driven && callers_may_move(p2p);
    if (!wait->drives)
        return;
    p2p->driven = true;
    waiter_init(&wait->waiter, &p2p->comm->tuning.wait);
}

/* Returns false if the time is over. */
static bool wait_for_change(struct wait *wait)
{
    rondo_p2p *p2p = wait->p2p;
    struct timespec until;

    if (wait->drives) {
        progress_round(p2p, &wait->waiter);
        return wait->seconds < 0 || clock_seconds() - wait->began < wait->seconds;
    }
    if (wait->seconds < 0) {
        lock_wait(&p2p->lock, &p2p->over);
        return true;
    }
    until = timespec_of(wait->began + fmin(wait->seconds, LONGEST_WAIT));
    return wait->seconds > 0 && lock_wait_until(&p2p->lock, &p2p->over, &until);
}

static void wait_end(const struct wait *wait)
{
    if (!wait->drives)
        return;
    wait->p2p->driven = false;
    progress_hand_over(wait->p2p);
}

/* Move what has come by now, or let the thread do so until the next time. */
static void look_once(rondo_p2p *p2p)
{
    if (callers_may_move(p2p)) {
        progress_peers(p2p, 0, p2p->comm->size - 1);
    } else {
        p2p->asked = true;
        progress_hand_over(p2p);
    }
}

rondo_result rondo_p2p_probe(rondo_p2p *p2p, int source, int tag, double seconds,
                             rondo_envelope *ret_envelope)
{
    CANCEL_LATER();
    const struct wish wish = {"rondo_p2p_probe", source, tag, true, NULL, 0};
    const struct unexpected *found;
    rondo_result result = check(p2p, &wish);
    struct wait wait;
    bool goes_on = true;

    if (result)
        return result;
    enter(p2p);
    p2p->probers++;
    wait_begin(&wait, p2p, seconds);
    if (!wait.drives && !(seconds == 0))
        progress_hand_over(p2p);
    if (seconds == 0 && !p2p->failed)
        look_once(p2p);
    while (!(found = match_find(p2p, source, tag)) && !p2p->failed && goes_on)
        goes_on = wait_for_change(&wait);
    if (found && ret_envelope)
        *ret_envelope = found->envelope;
    else if (!found)
        result = p2p->failed ? rondo_fail(p2p->failed, "%s", p2p->sentence) : RONDO_IN_PROGRESS;
    p2p->probers--;
    wait_end(&wait);
    lock_give(&p2p->lock);
    return result;
}

rondo_result rondo_transfer_wait(rondo_transfer *transfer, double seconds,
                                 rondo_envelope *ret_envelope)
{
    CANCEL_LATER();
    rondo_result result;
    rondo_p2p *p2p;
    struct wait wait;
    bool goes_on = true;

    if (!transfer)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_transfer_wait: the transfer is NULL.");
    p2p = transfer->p2p;
    if (fork_is_foreign(p2p->home))
        return fork_refuse("rondo_transfer_wait", "transfer");
    enter(p2p);
    /* Where it is over, its rondo_p2p may be closed, which has nothing to move messages with. */
    if (transfer->state != TRANSFER_OVER) {
        wait_begin(&wait, p2p, seconds);
        while (transfer->state != TRANSFER_OVER && goes_on)
            goes_on = wait_for_change(&wait);
        wait_end(&wait);
    }
    result = transfer->state == TRANSFER_OVER ? transfer->result : RONDO_IN_PROGRESS;
    if (result > RONDO_IN_PROGRESS)
        rondo_fail(result, "%s",
                   transfer->sentence ? transfer->sentence : rondo_result_string(result));
    if (!result && ret_envelope)
        *ret_envelope = transfer->envelope;
    lock_give(&p2p->lock);
    return result;
}

void rondo_transfer_close(rondo_transfer *transfer)
{
    CANCEL_LATER();
    rondo_p2p *p2p;

    if (!transfer || fork_is_foreign(transfer->p2p->home))
        return;
    p2p = transfer->p2p;
    enter(p2p);
    if (transfer->state == TRANSFER_POSTED && !transfer->sends) {
        transfers_remove(&p2p->receives, transfer);
        transfer_end(transfer, RONDO_OK);
    }
    while (transfer->state != TRANSFER_OVER)
        lock_wait(&p2p->lock, &p2p->over);
    leave(p2p);
    free(transfer->sentence);
    free(transfer);
}
