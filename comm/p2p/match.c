/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - which message is for which receive. */
#include "comm/p2p/p2p.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

void transfers_add(struct transfers *list, rondo_transfer *transfer)
{
    rondo_transfer **link = &list->first;

    while (*link)
        link = &(*link)->next;
    transfer->next = NULL;
    *link = transfer;
}

void transfers_remove(struct transfers *list, const rondo_transfer *transfer)
{
    rondo_transfer **link = &list->first;

    while (*link && *link != transfer)
        link = &(*link)->next;
    if (*link)
        *link = transfer->next;
}

void transfer_end(rondo_transfer *transfer, rondo_result result)
{
    if (transfer->p2p->trace && !transfer->probes)
        p2p_trace_end(transfer, result);
    transfer->state = TRANSFER_OVER;
    transfer->result = result;
    if (result)
        transfer->sentence = strdup(fail_sentence());
    transfer->p2p->pending--;
    pthread_cond_broadcast(&transfer->p2p->over);
}

static bool fits(const rondo_envelope *wanted, int source, int tag)
{
    return (wanted->source == RONDO_ANY_SOURCE || wanted->source == source) &&
           (wanted->tag == RONDO_ANY_TAG || wanted->tag == tag);
}

static rondo_result out_of_memory(const rondo_p2p *p2p, size_t bytes)
{
    return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a message of %zu bytes to rank %d.",
                      bytes, p2p->comm->rank);
}

static void end_too_long(rondo_transfer *transfer)
{
    rondo_fail(RONDO_ERROR_MISMATCH,
               "Rank %d has room for %zu bytes, but the message with tag %d from rank %d has %zu.",
               transfer->p2p->comm->rank, transfer->room, transfer->envelope.tag,
               transfer->envelope.source, transfer->envelope.bytes);
    transfer_end(transfer, RONDO_ERROR_MISMATCH);
}

/* The receive has its message: false if that is too long for it, which ends it. */
static bool take(rondo_transfer *transfer, const rondo_envelope *envelope)
{
    transfer->state = TRANSFER_MATCHED;
    transfer->envelope = *envelope;
    if (envelope->bytes <= transfer->room)
        return true;
    end_too_long(transfer);
    return false;
}

/* Asks for the message of an offer, or ends the receive and the send if that is too long. */
static rondo_result answer(rondo_transfer *transfer, uint64_t number)
{
    bool accepts = transfer->envelope.bytes <= transfer->room;
    const struct p2p_head head = {.kind = accepts ? P2P_ACCEPT : P2P_REFUSE, .number = number};
    rondo_result result = progress_send(transfer->p2p, transfer->envelope.source, &head, NULL);

    transfer->number = number;
    if (!result && accepts)
        transfers_add(&transfer->p2p->accepted, transfer);
    else if (!result)
        end_too_long(transfer);
    return result;
}

/* The payload has come before or with its receive. */
static void hand_over(rondo_transfer *transfer, const char *payload)
{
    if (transfer->envelope.bytes)
        memcpy(transfer->memory, payload, transfer->envelope.bytes);
    transfer_end(transfer, RONDO_OK);
}

/* ---- Messages that nobody had asked for ------------------------------------------------------ */

static void unexpected_free(struct unexpected *unexpected)
{
    free(unexpected->payload);
    free(unexpected);
}

static struct unexpected *keep(rondo_p2p *p2p, const rondo_envelope *envelope, size_t bytes)
{
    struct unexpected *kept = calloc(1, sizeof(*kept));

    if (kept && bytes)
        kept->payload = malloc(bytes);
    if (!kept || (bytes && !kept->payload)) {
        free(kept);
        return NULL;
    }
    kept->envelope = *envelope;
    *p2p->last = kept;
    p2p->last = &kept->next;
    return kept;
}

static void forget(rondo_p2p *p2p, struct unexpected *unexpected)
{
    struct unexpected **link = &p2p->first;

    while (*link != unexpected)
        link = &(*link)->next;
    *link = unexpected->next;
    if (p2p->last == &unexpected->next)
        p2p->last = link;
}

const struct unexpected *match_find(const rondo_p2p *p2p, int source, int tag)
{
    const rondo_envelope wanted = {.source = source, .tag = tag};
    const struct unexpected *at = p2p->first;

    while (at && (at->taker || !fits(&wanted, at->envelope.source, at->envelope.tag)))
        at = at->next;
    return at;
}

rondo_result match_refuse_offers(rondo_p2p *p2p)
{
    rondo_result result = RONDO_OK;
    struct unexpected *at, *next;

    for (at = p2p->first; at && !result; at = next) {
        const struct p2p_head head = {
            .kind = P2P_REFUSE, .tag = RONDO_ERROR_PEER, .number = at->number};

        next = at->next;
        if (!at->offered)
            continue;
        result = progress_send(p2p, at->envelope.source, &head, NULL);
        forget(p2p, at);
        unexpected_free(at);
    }
    return result;
}

rondo_result match_receive(rondo_transfer *transfer)
{
    rondo_p2p *p2p = transfer->p2p;
    struct unexpected *found = (struct unexpected *)(uintptr_t)match_find(
        p2p, transfer->envelope.source, transfer->envelope.tag);

    if (!found) {
        transfers_add(&p2p->receives, transfer);
        return RONDO_OK;
    }
    if (found->offered) {
        uint64_t number = found->number;

        transfer->state = TRANSFER_MATCHED;
        transfer->envelope = found->envelope;
        forget(p2p, found);
        unexpected_free(found);
        return answer(transfer, number);
    }
    transfer->state = TRANSFER_MATCHED;
    transfer->envelope = found->envelope;
    if (!found->whole) {
        found->taker = transfer;
        return RONDO_OK;
    }
    if (transfer->envelope.bytes > transfer->room)
        end_too_long(transfer);
    else
        hand_over(transfer, found->payload);
    forget(p2p, found);
    unexpected_free(found);
    return RONDO_OK;
}

/* ---- Messages that come ---------------------------------------------------------------------- */

static rondo_transfer *find_posted(rondo_p2p *p2p, int source, int tag)
{
    rondo_transfer *at = p2p->receives.first;

    while (at && !fits(&at->envelope, source, tag))
        at = at->next;
    if (at)
        transfers_remove(&p2p->receives, at);
    return at;
}

static rondo_transfer *find_numbered(struct transfers *list, int peer, uint64_t number)
{
    rondo_transfer *at = list->first;

    while (at && (at->envelope.source != peer || at->number != number))
        at = at->next;
    if (at)
        transfers_remove(list, at);
    return at;
}

static rondo_result lose(struct route *route, const rondo_p2p *p2p, size_t bytes)
{
    route->lost = malloc(bytes ? bytes : 1);
    return route->lost ? RONDO_OK : out_of_memory(p2p, bytes);
}

static rondo_result come_whole(rondo_p2p *p2p, struct route *route, const rondo_envelope *envelope)
{
    rondo_transfer *posted = find_posted(p2p, envelope->source, envelope->tag);

    if (posted && take(posted, envelope)) {
        route->to = posted;
        return RONDO_OK;
    }
    if (posted)
        return lose(route, p2p, envelope->bytes);
    route->kept = keep(p2p, envelope, envelope->bytes);
    pthread_cond_broadcast(&p2p->over);
    return route->kept ? RONDO_OK : out_of_memory(p2p, envelope->bytes);
}

static rondo_result come_offered(rondo_p2p *p2p, const rondo_envelope *envelope, uint64_t number)
{
    rondo_transfer *posted = find_posted(p2p, envelope->source, envelope->tag);
    struct unexpected *kept;
    rondo_result result;

    if (posted) {
        posted->state = TRANSFER_MATCHED;
        posted->envelope = *envelope;
        result = answer(posted, number);
        if (result)
            transfer_end(posted, result);
        return result;
    }
    kept = keep(p2p, envelope, 0);
    if (!kept)
        return out_of_memory(p2p, envelope->bytes);
    kept->offered = kept->whole = true;
    kept->number = number;
    pthread_cond_broadcast(&p2p->over);
    return RONDO_OK;
}

static rondo_result come_long(rondo_p2p *p2p, struct route *route, const rondo_envelope *envelope)
{
    rondo_transfer *accepted = find_numbered(&p2p->accepted, envelope->source, route->in.number);

    route->to = accepted;
    if (accepted && accepted->envelope.bytes == envelope->bytes)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INTERNAL,
                      "Rank %d sent message %llu of %zu bytes, which nobody accepted.",
                      envelope->source, (unsigned long long)route->in.number, envelope->bytes);
}

void match_end_lost(rondo_transfer *send)
{
    transfer_end(send,
                 rondo_fail(RONDO_ERROR_PEER,
                            "Rank %d %s and takes no more: %zu bytes with tag %d from rank %d are "
                            "lost.",
                            send->envelope.source, p2p_how_closed(send->p2p, send->envelope.source),
                            send->room, send->envelope.tag, send->p2p->comm->rank));
}

/* The peer asks for a message that it was offered, or refuses it. */
static rondo_result come_answered(rondo_p2p *p2p, int peer, const struct p2p_head *answered)
{
    rondo_transfer *send = find_numbered(&p2p->offered, peer, answered->number);
    struct p2p_head head = {.kind = P2P_LONG, .number = answered->number};
    rondo_result result;

    if (!send)
        return rondo_fail(RONDO_ERROR_INTERNAL, "Rank %d answered message %llu that nobody sent.",
                          peer, (unsigned long long)answered->number);
    if (answered->kind == P2P_REFUSE) {
        if (answered->tag)
            match_end_lost(send);
        else
            transfer_end(send, RONDO_OK);
        return RONDO_OK;
    }
    head.tag = send->envelope.tag;
    head.bytes = send->room;
    result = progress_send(p2p, peer, &head, send);
    if (result)
        transfer_end(send, result);
    return result;
}

rondo_result match_envelope(rondo_p2p *p2p, int source)
{
    struct route *route = &p2p->routes[source];
    const rondo_envelope envelope = {source, route->in.tag, (size_t)route->in.bytes};

    if (route->in.kind == P2P_WHOLE && route->in.bytes > P2P_WHOLE_MOST)
        return rondo_fail(RONDO_ERROR_INTERNAL, "Rank %d sent %llu bytes without an offer.", source,
                          (unsigned long long)route->in.bytes);
    switch (route->in.kind) {
    case P2P_WHOLE:
        return come_whole(p2p, route, &envelope);
    case P2P_OFFER:
        return come_offered(p2p, &envelope, route->in.number);
    case P2P_LONG:
        return come_long(p2p, route, &envelope);
    case P2P_ACCEPT:
    case P2P_REFUSE:
        return come_answered(p2p, source, &route->in);
    default:
        return rondo_fail(RONDO_ERROR_INTERNAL, "Rank %d sent an envelope of kind %u.", source,
                          route->in.kind);
    }
}

void match_payload(rondo_p2p *p2p, int source)
{
    struct route *route = &p2p->routes[source];
    struct unexpected *kept = route->kept;

    if (route->to)
        transfer_end(route->to, RONDO_OK);
    if (kept)
        kept->whole = true;
    if (kept && kept->taker) {
        if (kept->envelope.bytes > kept->taker->room)
            end_too_long(kept->taker);
        else
            hand_over(kept->taker, kept->payload);
        forget(p2p, kept);
        unexpected_free(kept);
    }
    free(route->lost);
    route->to = NULL;
    route->kept = NULL;
    route->lost = NULL;
}

rondo_result match_own(rondo_transfer *send)
{
    rondo_p2p *p2p = send->p2p;
    const rondo_envelope envelope = {p2p->comm->rank, send->envelope.tag, send->room};
    rondo_transfer *posted = find_posted(p2p, envelope.source, envelope.tag);
    struct unexpected *kept;

    if (posted && take(posted, &envelope))
        hand_over(posted, send->memory);
    if (!posted) {
        kept = keep(p2p, &envelope, envelope.bytes);
        if (!kept)
            return out_of_memory(p2p, envelope.bytes);
        if (envelope.bytes)
            memcpy(kept->payload, send->memory, envelope.bytes);
        kept->whole = true;
        pthread_cond_broadcast(&p2p->over);
    }
    transfer_end(send, RONDO_OK);
    return RONDO_OK;
}
