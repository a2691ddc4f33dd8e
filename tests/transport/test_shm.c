/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shm.c - links through shared memory: where rings lie, messages of processes, refusals. */
#include "base/fail.h"
#include "child.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"
#include "transport/networks.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 5, SLOTS = 3, SLOT_BYTES = 1000, RANKS = 3, MESSAGES = 500 };

/* This rank's arena, as comm/open.c prepares it. */
static bool prepare(int rank, int size, struct endpoint *endpoint)
{
    void *arena = NULL;

    *endpoint =
        (struct endpoint){.rank = rank, .size = size, .slots = SLOTS, .slot_bytes = SLOT_BYTES};
    if (heap_enter(&endpoint->heap) ||
        heap_alloc(shm_arena_bytes(size, CHANNELS, SLOTS, SLOT_BYTES), &arena))
        return false;
    endpoint->arena = (uint64_t)((char *)arena - heap_base());
    return true;
}

/* ---- Within one process ---------------------------------------------------------------------- */

struct ring {
    char *begin, *end;
};

static int compare_rings(const void *a, const void *b)
{
    const struct ring *one = a, *other = b;

    return one->begin < other->begin ? -1 : one->begin > other->begin;
}

/* Rings into one rank, by the links that its peers and itself see. */
static void connect_all(struct endpoint endpoints[RANKS],
                        struct link_out out[RANKS][CHANNELS * RANKS],
                        struct link_in in[RANKS][CHANNELS * RANKS])
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int peer = 0; peer < RANKS; peer++) {
            struct transport_pair pair = {
                .own = &endpoints[rank], .peer = &endpoints[peer], .channels = CHANNELS};
            struct process *process = NULL;

            cr_assert(process_attach(&endpoints[peer].heap, &process) == RONDO_OK);
            pair.process = process;
            cr_assert(shm_transport.connect(&pair, out[rank], in[rank]) == RONDO_OK);
            process_detach(process);
        }
}

Test(shm, the_writer_and_the_reader_see_the_same_ring)
{
    static struct endpoint endpoints[RANKS];
    static struct link_out out[RANKS][CHANNELS * RANKS];
    static struct link_in in[RANKS][CHANNELS * RANKS];

    for (int rank = 0; rank < RANKS; rank++)
        cr_assert(prepare(rank, RANKS, &endpoints[rank]));
    connect_all(endpoints, out, in);
    for (int channel = 0; channel < CHANNELS; channel++)
        for (int from = 0; from < RANKS; from++)
            for (int to = 0; to < RANKS; to++) {
                const struct link_out *writer = &out[from][channel * RANKS + to];
                const struct link_in *reader = &in[to][channel * RANKS + from];

                cr_expect(writer->slots == reader->slots && writer->credit == reader->credit);
                cr_expect(writer->stride == reader->stride && writer->slot_count == SLOTS);
                cr_expect((uintptr_t)writer->slots % LINK_LINE == 0);
                cr_expect((uintptr_t)writer->credit % LINK_LINE == 0);
            }
}

Test(shm, rings_neither_overlap_nor_leave_their_arena)
{
    static struct endpoint endpoints[RANKS];
    static struct link_out out[RANKS][CHANNELS * RANKS];
    static struct link_in in[RANKS][CHANNELS * RANKS];
    struct ring rings[2 * CHANNELS * RANKS]; /* and their credit lines */

    for (int rank = 0; rank < RANKS; rank++)
        cr_assert(prepare(rank, RANKS, &endpoints[rank]));
    connect_all(endpoints, out, in);
    for (int rank = 0; rank < RANKS; rank++) {
        char *arena = heap_base() + endpoints[rank].arena;

        for (int i = 0; i < CHANNELS * RANKS; i++) {
            char *credit = (char *)in[rank][i].credit;
            bool stays = credit < arena + shm_alarm_bytes(RANKS);

            rings[2 * i] = (struct ring){credit, credit + sizeof(struct link_credit)};
            rings[2 * i + 1] = (struct ring){(char *)in[rank][i].ll,
                                             in[rank][i].slots + SLOTS * in[rank][i].stride};
            cr_expect_eq(stays, i / RANKS == CHANNELS - 1, "the last channel's outlive the rank's");
        }
        qsort(rings, 2 * CHANNELS * RANKS, sizeof(rings[0]), compare_rings);
        cr_expect(rings[0].begin >= arena + offsetof(struct shm_alarm, gone) + RANKS);
        for (int i = 1; i < 2 * CHANNELS * RANKS; i++)
            cr_expect(rings[i].begin >= rings[i - 1].end);
        cr_expect(rings[2 * CHANNELS * RANKS - 1].end <=
                  arena + shm_arena_bytes(RANKS, CHANNELS, SLOTS, SLOT_BYTES));
    }
}

Test(shm, a_slot_has_room_for_its_payload_whatever_its_size)
{
    for (size_t bytes = 1; bytes < 300; bytes++) {
        cr_expect(link_stride(bytes) >= sizeof(struct link_slot) + bytes);
        cr_expect(link_stride(bytes) % LINK_LINE == 0);
        cr_expect(link_ring_bytes(4, bytes) == sizeof(struct link_credit) + 4 * link_stride(bytes));
    }
}

/* ---- Between processes ----------------------------------------------------------------------- */

/* Two ranks show each other their endpoints. */
struct meeting {
    struct endpoint endpoints[2];
    _Atomic int there[2];
};

struct end {
    struct link_out out[CHANNELS * 2];
    struct link_in in[CHANNELS * 2];
    struct process *process;
};

static bool connect_end(struct meeting *meeting, int rank, struct end *end)
{
    struct transport_pair pair = {.own = &meeting->endpoints[rank],
                                  .peer = &meeting->endpoints[1 - rank],
                                  .channels = CHANNELS};

    if (!prepare(rank, 2, &meeting->endpoints[rank]))
        return false;
    atomic_store_explicit(&meeting->there[rank], 1, memory_order_release);
    while (!atomic_load_explicit(&meeting->there[1 - rank], memory_order_acquire))
        sched_yield();
    if (process_attach(&meeting->endpoints[1 - rank].heap, &end->process))
        return false;
    pair.process = end->process;
    return shm_transport.connect(&pair, end->out, end->in) == RONDO_OK;
}

static void send_message(struct link_out *out, uint32_t number)
{
    struct link_slot *slot = (struct link_slot *)(void *)(out->slots + out->index * out->stride);

    while (out->sent - atomic_load_explicit(&out->credit->consumed, memory_order_acquire) >=
           out->slot_count)
        sched_yield();
    memset(slot->payload, (int)(number % 251), SLOT_BYTES);
    atomic_store_explicit(&slot->head.flag, (uint64_t)number << 32 | ++out->sent,
                          memory_order_release);
    out->index = (out->index + 1) % out->slot_count;
}

static bool receive_message(struct link_in *in, uint32_t number)
{
    struct link_slot *slot = (struct link_slot *)(void *)(in->slots + in->index * in->stride);
    bool right = true;

    while ((uint32_t)atomic_load_explicit(&slot->head.flag, memory_order_acquire) !=
           in->received + 1)
        sched_yield();
    right = atomic_load_explicit(&slot->head.flag, memory_order_acquire) >> 32 == number;
    for (int i = 0; i < SLOT_BYTES; i++)
        right = right && slot->payload[i] == (char)(number % 251);
    in->index = (in->index + 1) % in->slot_count;
    atomic_store_explicit(&in->credit->consumed, ++in->received, memory_order_release);
    return right;
}

/* Rank 1 sends back on the next channel what comes on one. */
static int echo(void *argument)
{
    static struct end end;

    if (!connect_end(argument, 1, &end))
        return 1;
    for (uint32_t number = 0; number < MESSAGES; number++) {
        int channel = (int)(number % CHANNELS);

        if (!receive_message(&end.in[channel * 2], number))
            return 2;
        send_message(&end.out[(channel + 1) % CHANNELS * 2], number);
    }
    process_detach(end.process);
    return 0;
}

Test(shm, two_processes_pass_many_messages_on_every_channel)
{
    static struct end end;
    struct meeting *meeting = child_share(sizeof(*meeting));
    pid_t child = child_start(echo, meeting);

    cr_assert(connect_end(meeting, 0, &end), "%s", fail_sentence());
    for (uint32_t number = 0; number < MESSAGES; number++) {
        int channel = (int)(number % CHANNELS);

        send_message(&end.out[channel * 2 + 1], number);
        cr_assert(receive_message(&end.in[(channel + 1) % CHANNELS * 2 + 1], number), "%u", number);
    }
    cr_expect(child_wait(child) == 0);
    process_detach(end.process);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

Test(shm, slots_outside_of_the_peers_heap_are_refused_and_named)
{
    static struct link_out out[CHANNELS * 2];
    static struct link_in in[CHANNELS * 2];
    struct endpoint own, peer;
    struct transport_pair pair = {.own = &own, .peer = &peer, .channels = CHANNELS};
    uint64_t bytes;

    cr_assert(prepare(0, 2, &own));
    peer = own;
    peer.rank = 1;
    bytes = own.heap.bytes;
    cr_assert(process_attach(&peer.heap, &pair.process) == RONDO_OK);
    for (int i = 0; i < 3; i++) {
        const uint64_t arenas[] = {bytes, bytes - 1, UINT64_MAX / 2};

        peer.arena = arenas[i];
        cr_expect(shm_transport.connect(&pair, out, in) == RONDO_ERROR_PEER);
        cr_expect(strstr(fail_sentence(), "Rank 1"), "%s", fail_sentence());
    }
    process_detach(pair.process);
}

Test(shm, ranks_on_different_hosts_are_told_why_they_can_not_connect)
{
    struct endpoint own = {.rank = 2, .host = "here"};
    struct endpoint peer = {.rank = 7, .host = "here"};
    struct transport_pair pair = {.own = &own, .peer = &peer};
    const struct networks none = {0};
    const struct transport_ops *transport = NULL;

    cr_expect(transport_choose(&none, &pair, "auto", &transport) == RONDO_OK);
    cr_expect(transport == &shm_transport);
    transport = NULL;
    peer.host[0] = 't';
    cr_expect(transport_choose(&none, &pair, "auto", &transport) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(transport == NULL);
    cr_expect(strstr(fail_sentence(), "Rank 2 cannot reach rank 7 (shm: "), "%s", fail_sentence());
}
