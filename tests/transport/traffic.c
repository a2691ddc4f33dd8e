/* SPDX-License-Identifier: BSD-3-Clause */
/* traffic.c - see traffic.h. */
#include "tests/transport/traffic.h"

#include "transport/link/connection.h"

#include <string.h>

struct traffic_calls traffic_calls[NODES];

/* ---- What messages are ----------------------------------------------------------------------- */

size_t traffic_length(struct traffic traffic, uint32_t number)
{
    static const size_t lengths[] = {8,     0,     56,    57,     1000, 4096,
                                     32768, 65536, 32769, 149999, 1,    NODE_SLOT_BYTES};
    int path = traffic.from + 2 * traffic.to + 5 * traffic.channel;

    return lengths[(number + (uint32_t)path) % (sizeof(lengths) / sizeof(lengths[0]))];
}

static char byte_of(struct traffic traffic, uint32_t number, size_t at)
{
    return (char)(at * 31 + (at >> 8) + number * 7 +
                  (unsigned)(traffic.from + 3 * traffic.channel));
}

void traffic_fill(struct traffic traffic, uint32_t number, char *payload, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        payload[i] = byte_of(traffic, number, i);
}

uint64_t traffic_flag(uint32_t number)
{
    return (uint64_t)(0xabc + number) << 32 | number;
}

bool traffic_is_right(struct traffic traffic, uint32_t number, const struct link_slot *slot,
                      const char *payload)
{
    uint64_t flag = atomic_load_explicit(&slot->head.flag, memory_order_acquire);
    bool right = flag == traffic_flag(number);

    for (size_t i = 0; i < traffic_length(traffic, number); i++)
        right &= payload[i] == byte_of(traffic, number, i);
    return right;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

struct link_slot *traffic_open(struct link_out *out)
{
    struct link_slot *slot = (struct link_slot *)(void *)(out->slots + out->index * out->stride);

    /* Acquire, pairs with the release of who gives slots back: what it read may be overwritten. */
    if (out->sent - atomic_load_explicit(&out->credit->consumed, memory_order_acquire) >=
        out->slot_count)
        return NULL;
    out->sent++;
    out->index = (out->index + 1) % out->slot_count;
    return slot;
}

char *traffic_payload(struct link_slot *slot, size_t bytes)
{
    return bytes <= LINK_INLINE ? slot->head.payload : slot->payload;
}

void traffic_push(struct traffic traffic, struct link_out *out, struct link_slot *slot,
                  char *payload)
{
    size_t bytes = traffic_length(traffic, out->sent);

    traffic_fill(traffic, out->sent, payload, bytes);
    atomic_store_explicit(&slot->head.flag, traffic_flag(out->sent), memory_order_release);
    connection_push(out->connection, slot, payload, bytes, traffic_flag(out->sent));
}

struct link_slot *traffic_take(struct link_in *in)
{
    struct link_slot *slot = (struct link_slot *)(void *)(in->slots + in->index * in->stride);
    uint64_t flag = atomic_load_explicit(&slot->head.flag, memory_order_acquire);

    if ((uint32_t)flag != in->received + 1)
        return NULL;
    in->received++;
    in->index = (in->index + 1) % in->slot_count;
    return slot;
}

int traffic_receive(struct traffic traffic, struct link_in *in)
{
    struct link_slot *slot = traffic_take(in);
    size_t bytes = traffic_length(traffic, in->received);
    bool right;

    if (!slot)
        return 0;
    right = traffic_is_right(traffic, in->received, slot, traffic_payload(slot, bytes));
    connection_give_back(in->connection, in->received);
    return right ? 1 : -1;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

void traffic_begin_call(int rank)
{
    struct traffic_calls *calls = &traffic_calls[rank];
    uint64_t words[CALL_HEADER_WORDS];

    memset(calls, 0, sizeof(*calls));
    memset(words, 'a' + rank, sizeof(words));
    call_header_begin(&calls->page, 1 + (uint32_t)rank, words, false);
    call_header_say(&calls->page, calls->header);
}

bool traffic_heard(int rank)
{
    bool all = true;

    for (int peer = 0; peer < NODES; peer++) {
        char header[sizeof(struct call_header)];

        call_header_say(&traffic_calls[rank].pages[peer], header);
        all &= peer == rank || memcmp(header, traffic_calls[peer].header, sizeof(header)) == 0;
    }
    return all;
}
