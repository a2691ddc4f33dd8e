/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zcopy.c - memory of the caller that messages leave from and come to: when that has to end.
 *
 * The memory of a zero-copy send may be written again once the system has it. Until then it can be
 * moved aside, into the slot of the message, which is empty for that reason. What comes is put
 * where it is expected only if no part of it was put elsewhere; it may be the memory of a zero-copy
 * send as well.
 */
#include "transport/tcp/engine.h"

#include <string.h>

/* Addresses [begin, end). */
struct span {
    uintptr_t begin, end;
};

static void reclaim(struct tcp_message *message, struct span span)
{
    uintptr_t from = (uintptr_t)message->payload;

    if (!message->slot || from >= span.end || from + message->frame.bytes <= span.begin)
        return;
    memcpy(message->slot, message->payload, message->frame.bytes);
    message->payload = message->slot;
    message->slot = NULL;
}

static void reclaim_peer(struct tcp_peer *peer, struct span span)
{
    uint32_t mask = peer->network->queue_room - 1;

    for (uint32_t i = peer->head; i != peer->tail; i++)
        reclaim(&peer->queue[i & mask], span);
    for (int i = 1; i < TCP_LINES; i++)
        for (int k = 0; peer->lines[i] && k < peer->lines[i]->batched; k++)
            reclaim(&peer->lines[i]->batch[k], span);
}

static void reclaim_all(struct tcp_network *network, struct span span)
{
    for (int rank = 0; rank < network->size && tcp_unsent(network); rank++)
        if (network->peers[rank])
            reclaim_peer(network->peers[rank], span);
}

void tcp_zcopy_reclaim(struct tcp_network *network, const char *at, size_t bytes)
{
    reclaim_all(network, (struct span){(uintptr_t)at, (uintptr_t)at + bytes});
}

/* The rest of a message that is coming goes to its slot, with what came of the last record: its tag
 * will be that of the whole. */
static void withdraw(struct tcp_line *line)
{
    size_t before;
    char *to;

    if (!line || !line->delivered)
        return;
    to = line->slot->payload + (line->frame.bytes - line->left);
    before = line->sealed ? line->record - line->part : 0;
    memcpy(to - before, line->to - before, before);
    line->to = to;
    line->delivered = false;
}

void tcp_zcopy_end(struct tcp_network *network)
{
    reclaim_all(network, (struct span){0, UINTPTR_MAX});
    for (int rank = 0; rank < network->size; rank++) {
        struct tcp_peer *peer = network->peers[rank];

        for (int i = 1; peer && i < TCP_LINES; i++)
            withdraw(peer->lines[i]);
        for (int i = 0; peer && i < network->channels; i++)
            peer->links[i].expected.flag = 0;
    }
}
