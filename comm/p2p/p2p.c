/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.c - the public functions of rondo/p2p.h for messages: what a caller begins and waits for. */
#include "comm/p2p/p2p.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"
#include "comm/failure/health.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

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
    if (health_has_closed(p2p->comm, peer))
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d cannot send %zu bytes with tag %d to rank %d, which %s and "
                          "takes no more.",
                          p2p->comm->rank, transfer->room, transfer->envelope.tag, peer,
                          p2p_how_closed(p2p, peer));
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

/* One more waits. With the lock held. */
static rondo_result count_in(rondo_p2p *p2p)
{
    if (p2p->failed)
        return rondo_fail(p2p->failed, "%s", p2p->sentence);
    p2p->restarts |= !p2p->pending; /* nobody has looked at peers since the last wait */
    p2p->pending++;
    return RONDO_OK;
}

static rondo_result begin(rondo_p2p *p2p, const struct wish *wish, bool sends,
                          rondo_transfer **ret_transfer)
{
    rondo_transfer *transfer = calloc(1, sizeof(*transfer));
    rondo_result result;

    if (!transfer)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message.");
    *transfer = (rondo_transfer){.p2p = p2p,
                                 .sends = sends,
                                 .envelope = {wish->peer, wish->tag, wish->bytes},
                                 .memory = (char *)(uintptr_t)wish->memory,
                                 .room = wish->bytes};
    p2p_enter(p2p);
    result = count_in(p2p);
    if (!result) {
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

/* The result of a transfer, or of a probe, with its sentence. */
static rondo_result report(const rondo_transfer *transfer)
{
    if (transfer->state != TRANSFER_OVER)
        return RONDO_IN_PROGRESS;
    if (transfer->result)
        rondo_fail(transfer->result, "%s",
                   transfer->sentence ? transfer->sentence : rondo_result_string(transfer->result));
    return transfer->result;
}

/* With the lock held. */
static rondo_result look_for(rondo_transfer *probe, double seconds, rondo_envelope *ret_envelope)
{
    rondo_p2p *p2p = probe->p2p;
    const rondo_envelope *wanted = &probe->envelope;
    const struct unexpected *found;
    struct wait wait;
    bool goes_on = true;

    transfers_add(&p2p->probes, probe);
    wait_begin(&wait, p2p, seconds);
    if (seconds == 0)
        progress_glance(p2p);
    else if (!wait.drives)
        progress_hand_over(p2p);
    while (!(found = match_find(p2p, wanted->source, wanted->tag)) &&
           probe->state != TRANSFER_OVER && goes_on)
        goes_on = wait_for_change(&wait);
    if (found && ret_envelope)
        *ret_envelope = found->envelope;
    if (probe->state != TRANSFER_OVER) {
        transfers_remove(&p2p->probes, probe);
        p2p->pending--;
    }
    wait_end(&wait);
    return found ? RONDO_OK : report(probe);
}

rondo_result rondo_p2p_probe(rondo_p2p *p2p, int source, int tag, double seconds,
                             rondo_envelope *ret_envelope)
{
    CANCEL_LATER();
    const struct wish wish = {"rondo_p2p_probe", source, tag, true, NULL, 0};
    rondo_result result = check(p2p, &wish);
    rondo_transfer probe = {.p2p = p2p, .probes = true, .envelope = {source, tag, 0}};

    if (result)
        return result;
    p2p_enter(p2p);
    result = count_in(p2p);
    if (!result)
        result = look_for(&probe, seconds, ret_envelope);
    lock_give(&p2p->lock);
    free(probe.sentence);
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
    p2p_enter(p2p);
    /* Where it is over, its rondo_p2p may be closed, which has nothing to move messages with. */
    if (transfer->state != TRANSFER_OVER) {
        wait_begin(&wait, p2p, seconds);
        while (transfer->state != TRANSFER_OVER && goes_on)
            goes_on = wait_for_change(&wait);
        wait_end(&wait);
    }
    result = report(transfer);
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
    p2p_enter(p2p);
    if (transfer->state == TRANSFER_POSTED && !transfer->sends) {
        transfers_remove(&p2p->receives, transfer);
        transfer_end(transfer, RONDO_OK);
    }
    while (transfer->state != TRANSFER_OVER)
        lock_wait(&p2p->lock, &p2p->over);
    p2p_leave(p2p);
    free(transfer->sentence);
    free(transfer);
}
