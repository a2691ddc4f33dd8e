/* SPDX-License-Identifier: BSD-3-Clause */
/* late_network.c - see late_network.h. */
#include "late_network.h"

#include <string.h>

void late_settle(struct seat *seat, const struct connection_ops *ops, const char *at, size_t bytes)
{
    for (int to = 0; to < seat->job->size; to++)
        for (int i = 0; i < seat->queues[to].count; i++) {
            struct message *m = &seat->queues[to].messages[i];
            uintptr_t from = (uintptr_t)m->payload, begin = (uintptr_t)at;

            if ((ops && seat->halves[to].base.ops != ops) || m->inlined ||
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
    struct queue *queue = &half->seat->queues[connection->peer];

    half->seat->job->lent += payload != slot->payload && payload != slot->head.payload;
    queue->messages[queue->count++] = (struct message){.slot_payload = slot->payload,
                                                       .payload = payload,
                                                       .bytes = bytes,
                                                       .flag = flag,
                                                       .lane = connection->lane,
                                                       .inlined = payload == slot->head.payload};
}

static void give_back(struct connection *connection, uint32_t received)
{
    struct half *half = (struct half *)connection;
    struct seat *peer = &half->seat->job->seats[connection->peer];
    struct half *theirs =
        &peer->halves[connection->lane * half->seat->job->size + half->seat->rank];

    atomic_store_explicit(&theirs->credit->consumed, received, memory_order_release);
}

static void settle(struct connection *connection, const void *at, size_t bytes)
{
    late_settle(((struct half *)connection)->seat, connection->ops, at, bytes);
}

static void expect(struct connection *connection, uint64_t flag, void *at, size_t bytes)
{
    struct half *half = (struct half *)connection;

    half->expected.flag = flag;
    half->expected.at = at;
    half->expected.bytes = bytes;
}

const struct connection_ops late_ops[2] = {
    {.push = push, .give_back = give_back, .settle = settle, .expect = expect},
    {.push = push, .give_back = give_back, .settle = settle, .expect = expect}};

void late_deliver(struct job *job, int from, int to)
{
    struct queue *queue = &job->seats[from].queues[to];
    struct message *m = queue->messages;
    struct half *half = &job->seats[to].halves[m->lane * job->size + from];
    struct link_slot *slot;

    if (!queue->count)
        return;
    slot = (struct link_slot *)(void *)(half->inbox + ((uint32_t)m->flag - 1) % SLOTS *
                                                          link_stride(job->slot_bytes));
    if (!m->begun) {
        m->begun = true;
        m->to = m->inlined ? slot->head.payload : slot->payload;
        if (!m->inlined && half->expected.flag == m->flag && half->expected.bytes == m->bytes) {
            late_settle(&job->seats[to], NULL, half->expected.at, half->expected.bytes);
            half->base.place = m->to = half->expected.at;
            half->expected.flag = 0;
            m->placed = true;
            job->placed++;
        }
        if (m->bytes)
            memcpy(m->to, m->payload, m->bytes / 2);
        return;
    }
    if (m->bytes)
        memcpy(m->to + m->bytes / 2, m->payload + m->bytes / 2, m->bytes - m->bytes / 2);
    if (m->placed)
        half->base.placed = m->flag;
    atomic_store_explicit(&slot->head.flag, m->flag, memory_order_release);
    memmove(m, m + 1, (size_t)--queue->count * sizeof(*m));
}
