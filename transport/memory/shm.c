/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c - links between ranks of one host, processes or threads: rings of slots in the reader's
 * heap.
 *
 *     arena of rank r:  | alarm | from 0: channel 0 | channel 1 | ... | from 1: channel 0 | ...
 *     ring:             | credit line | LL lines | slot 0 | slot 1 | ...
 *     alarm:            | rung | gone | of the last channel, credit lines from 0, 1, ...
 *
 * The writer stores into the reader's memory, so a reader polls lines that are its own until a
 * message arrives. Rings that are never used cost address space only. An arena goes by peer and
 * channel; the arrays of links go by channel and peer (link/ops.h). Both ranks have slots of the
 * same number and size, as opening has checked; `packed` is set by whoever connects.
 */
#include "transport/memory/shm.h"

#include "base/fail.h"
#include "transport/link/ops.h"
#include "transport/memory/process.h"

#include <string.h>

/* From the beginning of a ring. */
enum {
    LL_AT = sizeof(struct link_credit),
    SLOTS_AT = LL_AT + sizeof(struct link_ll),
};

static size_t page_up(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static size_t ring_bytes(int slots, size_t slot_bytes)
{
    return page_up(sizeof(struct link_ll) + link_ring_bytes(slots, slot_bytes));
}

/* Returns where the alarm has the credit line of that rank's messages on the last channel. */
static size_t credit_at(int size, int from)
{
    size_t gone = ((size_t)size + LINK_LINE - 1) / LINK_LINE * LINK_LINE;

    return sizeof(struct shm_alarm) + gone + (size_t)from * sizeof(struct link_credit);
}

size_t shm_alarm_bytes(int size)
{
    return page_up(credit_at(size, size));
}

size_t shm_arena_bytes(int size, int channels, int slots, size_t slot_bytes)
{
    return shm_alarm_bytes(size) + (size_t)size * (size_t)channels * ring_bytes(slots, slot_bytes);
}

static bool shm_can_connect(const struct transport_pair *pair, const char **why)
{
    *why = "they are on different hosts, or in containers that do not share process ids";
    return memcmp(pair->own->host, pair->peer->host, sizeof(pair->own->host)) == 0;
}

/* The place of the ring from rank `from` on `channel` in the heap of `owner`. */
static uint64_t ring_offset(const struct endpoint *owner, int from, int channel, int channels)
{
    size_t bytes = ring_bytes((int)owner->slots, owner->slot_bytes);

    return owner->arena + shm_alarm_bytes(owner->size) +
           ((uint64_t)from * (uint64_t)channels + (uint64_t)channel) * bytes;
}

/* Maps a part of the peer's arena. */
static rondo_result map_part(const struct transport_pair *pair, uint64_t offset, size_t bytes,
                             char **ret_part)
{
    rondo_result result = process_map(pair->process, offset, bytes, ret_part);

    if (result == RONDO_ERROR_PEER)
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d says that its slots are outside of its shared heap, or it "
                          "has ended.",
                          pair->peer->rank);
    return result;
}

/* The credit lines of the last channel are those that stay. */
static rondo_result keep_credits(const struct transport_pair *pair, struct link_out *out,
                                 struct link_in *in)
{
    const struct endpoint *own = pair->own, *peer = pair->peer;
    int at = (pair->channels - 1) * own->size + peer->rank;
    char *ours = heap_base() + own->arena + credit_at(own->size, peer->rank), *theirs = NULL;
    rondo_result result = map_part(pair, peer->arena + credit_at(own->size, own->rank),
                                   sizeof(struct link_credit), &theirs);

    in[at].credit = (struct link_credit *)(void *)ours;
    out[at].credit = (struct link_credit *)(void *)theirs;
    return result;
}

static rondo_result shm_connect(const struct transport_pair *pair, struct link_out *out,
                                struct link_in *in)
{
    const struct endpoint *own = pair->own;
    const struct endpoint *peer = pair->peer;
    size_t stride = link_stride(own->slot_bytes);
    size_t bytes = ring_bytes((int)own->slots, own->slot_bytes);

    for (int channel = 0; channel < pair->channels; channel++) {
        int at = channel * own->size + peer->rank;
        char *ours = heap_base() + ring_offset(own, peer->rank, channel, pair->channels);
        char *theirs = NULL;
        rondo_result result =
            map_part(pair, ring_offset(peer, own->rank, channel, pair->channels), bytes, &theirs);

        if (result)
            return result;
        out[at] = (struct link_out){.credit = (struct link_credit *)(void *)theirs,
                                    .ll = (struct link_ll *)(void *)(theirs + LL_AT),
                                    .slots = theirs + SLOTS_AT,
                                    .stride = stride,
                                    .slot_count = own->slots};
        in[at] = (struct link_in){.credit = (struct link_credit *)(void *)ours,
                                  .ll = (struct link_ll *)(void *)(ours + LL_AT),
                                  .slots = ours + SLOTS_AT,
                                  .stride = stride,
                                  .slot_count = own->slots};
    }
    return keep_credits(pair, out, in);
}

const struct transport_ops shm_transport = {
    .name = "shm",
    .can_connect = shm_can_connect,
    .connect = shm_connect,
};
