/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take.c - what frames mean. A frame is a header on a line and the bytes that follow it. Line 0 of
 * a peer carries control frames, its other lines messages and credits (engine.h). Every number in
 * a frame is checked before use: the peer has proved that it belongs to the job, not that it is
 * right. (Whom an answer blames is checked by the owner of the network.)
 */
#include "transport/tcp/engine.h"

#include <stdio.h>
#include <string.h>

/* True if another line is in the middle of a message for that slot. Such a second one is refused:
 * the end of one would publish the slot while bytes of the other still come, to memory that may be
 * the caller's again. */
static bool comes_twice(const struct tcp_line *line, const struct link_slot *slot)
{
    for (int i = 1; i < TCP_LINES; i++) {
        const struct tcp_line *other = line->peer->lines[i];

        if (other && other != line && tcp_line_is_amid(other) && other->frame.kind == TCP_DATA &&
            other->slot == slot)
            return true;
    }
    return false;
}

static bool expect_message(struct tcp_line *line)
{
    struct tcp_network *network = line->network;
    const struct tcp_frame *frame = &line->frame;
    struct tcp_link *link = &line->peer->links[frame->channel];
    uint32_t distance = (uint32_t)frame->flag - 1 - link->given;
    uint32_t slot = (link->given_index + distance) % (uint32_t)network->slots;

    if (distance >= (uint32_t)network->slots ||
        frame->bytes > (frame->inlined ? LINK_INLINE : network->slot_bytes))
        return false;
    line->slot = (struct link_slot *)(void *)(link->inbox + slot * network->stride);
    if (comes_twice(line, line->slot))
        return false;
    line->to = frame->inlined ? line->slot->head.payload : line->slot->payload;
    line->left = frame->bytes;
    line->aimed = frame->inlined;
    line->delivered = false;
    return true;
}

void tcp_take_aim(struct tcp_line *line)
{
    struct tcp_network *network = line->network;
    struct tcp_link *link = &line->peer->links[line->frame.channel];

    line->aimed = true;
    if (link->expected.flag != line->frame.flag || link->expected.bytes != line->left)
        return;
    tcp_zcopy_reclaim(network, link->expected.at, link->expected.bytes);
    link->base.delivered_to = line->to = link->expected.at;
    link->expected.flag = 0;
    line->delivered = true;
}

bool tcp_take_post(struct tcp_line *line)
{
    const struct tcp_frame *frame = &line->frame;
    bool data = frame->kind == TCP_DATA || frame->kind == TCP_CREDIT;

    if (data != (line->index > 0) || frame->channel >= line->network->channels)
        return false;
    if (frame->kind == TCP_DATA)
        return expect_message(line);
    if (frame->bytes >= sizeof(line->aside))
        return false;
    line->to = line->aside;
    line->left = frame->bytes;
    line->aimed = true;
    return true;
}

/* The peer has given back so many messages; lines may overtake each other. */
static void take_credit(struct tcp_link *link, uint32_t consumed)
{
    uint32_t known = atomic_load_explicit(&link->credit->consumed, memory_order_relaxed);

    if (consumed - known > link->pushed - known)
        return; /* older than what is known, or of messages that we never sent */
    /* Release, pairs with the acquire in step_wait_credit(). */
    atomic_store_explicit(&link->credit->consumed, consumed, memory_order_release);
}

static void take_message(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;

    if (line->frame.kind == TCP_DATA) {
        call_header_hear(peer->page, line->frame.call_header);
        if (line->delivered)
            peer->links[line->frame.channel].base.delivered = line->frame.flag;
        line->delivered = false;
        /* Release, pairs with the acquire in step_wait_data(). */
        atomic_store_explicit(&line->slot->head.flag, line->frame.flag, memory_order_release);
    }
    take_credit(&peer->links[line->frame.channel], line->frame.consumed);
}

static void take_failure(struct tcp_line *line)
{
    struct tcp_network *network = line->network;
    uint32_t result = (uint32_t)line->frame.flag;
    int32_t culprit = (int32_t)(line->frame.flag >> 32);
    bool is_error = result > RONDO_OK && result < RONDO_RESULTS && result != RONDO_IN_PROGRESS;
    bool is_rank = culprit >= -1 && culprit < network->size;
    struct network_failure failure = {.result =
                                          is_error ? (rondo_result)result : RONDO_ERROR_INTERNAL,
                                      .culprit = is_rank ? culprit : line->peer->rank,
                                      .sentence = line->aside};

    line->aside[line->frame.bytes] = '\0';
    for (char *at = line->aside; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    line->peer->failed = true;
    network->owner.failed(network->owner.context, line->peer->rank, &failure);
}

static void answer(struct tcp_peer *peer)
{
    const struct network_owner *owner = &peer->network->owner;
    struct tcp_frame frame = {.kind = TCP_TELL};
    struct network_wait wait;

    if (peer->state != TCP_UP)
        return;
    call_header_say(owner->page, frame.call_header);
    owner->waits(owner->context, &wait);
    frame.flag = wait.blames;
    frame.consumed = wait.heartbeats;
    tcp_peer_control(peer, &frame, NULL);
}

static void take_answer(struct tcp_peer *peer, const struct tcp_frame *frame)
{
    const struct network_owner *owner = &peer->network->owner;
    const struct network_wait wait = {.blames = frame->flag, .heartbeats = frame->consumed};

    peer->asking = false;
    call_header_hear(peer->page, frame->call_header);
    owner->waited(owner->context, peer->rank, &wait);
}

static void take_control(struct tcp_line *line)
{
    struct tcp_network *network = line->network;
    const struct network_owner *owner = &network->owner;
    struct tcp_peer *peer = line->peer;

    switch (line->frame.kind) {
    case TCP_NOTE:
        owner->note(owner->context, peer->rank, line->aside, line->frame.bytes);
        break;
    case TCP_FAIL:
        take_failure(line);
        break;
    case TCP_BYE:
        peer->bye = true;
        break;
    case TCP_WIDEN:
        tcp_peer_widen(peer);
        break;
    case TCP_ASK:
        answer(peer);
        break;
    case TCP_TELL:
        take_answer(peer, &line->frame);
        break;
    default:
        break; /* a later version's */
    }
}

bool tcp_take(struct tcp_line *line)
{
    line->network->moved |= line->index > 0; /* a peer that only answers does not get on */
    if (line->index > 0)
        take_message(line);
    else
        take_control(line);
    return line->state == TCP_OPEN;
}
