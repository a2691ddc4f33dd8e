/* SPDX-License-Identifier: BSD-3-Clause */
/* late_network.c - see late_network.h. */
#include "late_network.h"

#include <string.h>

void late_reclaim(struct member *member, const struct connection_ops *ops, const char *at,
                  size_t bytes)
{
    for (int to = 0; to < member->job->size; to++)
        for (int i = 0; i < member->queues[to].count; i++) {
            struct message *m = &member->queues[to].messages[i];
            uintptr_t from = (uintptr_t)m->payload, begin = (uintptr_t)at;

            if ((ops && member->halves[to].base.ops != ops) || m->inlined ||
                m->payload == m->slot_payload || from >= begin + bytes || from + m->bytes <= begin)
                continue;
            memcpy(m->slot_payload, m->payload, m->bytes);
            m->payload = m->slot_payload;
        }
}

static void push(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag)
{
    struct half *half = (struct half *)connection;
    struct queue *queue = &half->member->queues[connection->peer];

    half->member->job->zcopy += payload != slot->payload && payload != slot->head.payload;
    queue->messages[queue->count++] = (struct message){.slot_payload = slot->payload,
                                                       .payload = payload,
                                                       .bytes = bytes,
                                                       .flag = flag,
                                                       .channel = connection->channel,
                                                       .inlined = payload == slot->head.payload};
}

static void give_back(struct connection *connection, uint32_t received)
{
    struct half *half = (struct half *)connection;
    struct member *peer = &half->member->job->members[connection->peer];
    struct half *theirs =
        &peer->halves[connection->channel * half->member->job->size + half->member->rank];

    atomic_store_explicit(&theirs->credit->consumed, received, memory_order_release);
}

static void reclaim(struct connection *connection, const void *at, size_t bytes)
{
    late_reclaim(((struct half *)connection)->member, connection->ops, at, bytes);
}

static void post_receive(struct connection *connection, uint64_t flag, void *at, size_t bytes)
{
    struct half *half = (struct half *)connection;

    half->expected.flag = flag;
    half->expected.at = at;
    half->expected.bytes = bytes;
}

const struct connection_ops late_ops[2] = {
    {.push = push, .give_back = give_back, .reclaim = reclaim, .post_receive = post_receive},
    {.push = push, .give_back = give_back, .reclaim = reclaim, .post_receive = post_receive}};

void late_deliver(struct job *job, int from, int to)
{
    struct queue *queue = &job->members[from].queues[to];
    struct message *m = queue->messages;
    struct half *half = &job->members[to].halves[m->channel * job->size + from];
    struct link_slot *slot;

    if (!queue->count)
        return;
    slot = (struct link_slot *)(void *)(half->inbox + ((uint32_t)m->flag - 1) % SLOTS *
                                                          link_stride(job->slot_bytes));
    if (!m->begun) {
        m->begun = true;
        m->to = m->inlined ? slot->head.payload : slot->payload;
        if (!m->inlined && half->expected.flag == m->flag && half->expected.bytes == m->bytes) {
            late_reclaim(&job->members[to], half->base.ops, half->expected.at,
                         half->expected.bytes);
            half->base.delivered_to = m->to = half->expected.at;
            half->expected.flag = 0;
            m->delivered = true;
            job->delivered++;
        }
        if (m->bytes)
            memcpy(m->to, m->payload, m->bytes / 2);
        return;
    }
    if (m->bytes)
        memcpy(m->to + m->bytes / 2, m->payload + m->bytes / 2, m->bytes - m->bytes / 2);
    if (m->delivered)
        half->base.delivered = m->flag;
    atomic_store_explicit(&slot->head.flag, m->flag, memory_order_release);
    memmove(m, m + 1, (size_t)--queue->count * sizeof(*m));
}
