/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zcopy.c - messages that leave from the caller's memory, not from slots.
 *
 * Only what lies in the symmetric heap is sent zero-copy, from rondo_mem_alloc() or registered: the
 * adapter may know it from then on, as heap.c says when it goes away. Memory of malloc() goes away
 * without a word, so its messages are copied into slots, which costs less than registering it for
 * one call.
 *
 * What was posted can't be taken back. So a call ends when its zero-copy sends are over
 * (flushed()), and who writes over such memory waits for the adapter; what is not posted yet moves
 * to its slot, which is empty for that reason.
 */
#include "transport/verbs/inside.h"

#include "base/clock.h"
#include "base/log.h"
#include "transport/memory/heap.h"
#include "transport/memory/page.h"

#include <sched.h>
#include <string.h>

enum {
    ZCOPY_FROM = 32768, /* bytes: waiting for the acknowledgement costs as much as a short copy */
    PART = 4 << 20 /* of an allocation is registered at once: pages that a call may never use */
};

/* Addresses [begin, end). */
struct span {
    uintptr_t begin, end;
};

static bool overlaps(struct span span, const char *at, size_t bytes)
{
    return (uintptr_t)at < span.end && (uintptr_t)at + bytes > span.begin;
}

bool verbs_zcopy_takes(const struct verbs_network *network, const void *from, size_t bytes)
{
    uint64_t offset;

    return bytes >= ZCOPY_FROM && !network->zcopies_not && heap_find(from, bytes, &offset);
}

/* ---- Zero-copy sends ------------------------------------------------------------------------- */

static struct verbs_zcopy *zcopy_at(const struct verbs_peer *peer, unsigned index)
{
    unsigned at = peer->first_zcopy + index, room = verbs_zcopies_room(peer->network);

    return &peer->zcopies[at < room ? at : at - room];
}

/* The region of one rail; NULL, with the sentence set: it can't be registered. */
static struct verbs_region *find_region(struct verbs_memory *memory, const char *at, size_t bytes)
{
    struct verbs_region *region = verbs_memory_find(memory, at, bytes, IBV_ACCESS_RELAXED_ORDERING);
    size_t length, before, after;
    char *block;

    if (region)
        return region;
    if (!heap_block(at, &block, &length) || bytes > length - (size_t)(at - block)) {
        rondo_fail(RONDO_ERROR_INVALID, "memory of a zero-copy send is not one allocation");
        return NULL;
    }
    /* Only whole pages come here, and pages that are partly of others are none of the adapter's. */
    length = (length - page_after(block)) / PAGE * PAGE;
    block += page_after(block);
    before = (size_t)(at - block) / PART * PART;
    after = ((size_t)(at - block) + bytes + PART - 1) / PART * PART;
    if (verbs_memory_get(memory, block + before, (after < length ? after : length) - before,
                         IBV_ACCESS_RELAXED_ORDERING, &region))
        return NULL;
    return region;
}

static void give_regions(struct verbs_peer *peer, struct verbs_zcopy *zcopy)
{
    for (int i = 0; i < peer->pairs; i++) {
        verbs_memory_put(&peer->rail[i].queue.device->memory, zcopy->regions[i]);
        zcopy->regions[i] = NULL;
    }
}

static bool take_regions(struct verbs_peer *peer, struct verbs_zcopy *zcopy)
{
    struct verbs_network *network = peer->network;

    for (int i = 0; i < peer->pairs; i++) {
        zcopy->regions[i] =
            find_region(&peer->rail[i].queue.device->memory, zcopy->at, zcopy->bytes);
        if (zcopy->regions[i])
            continue;
        give_regions(peer, zcopy);
        network->zcopies_not = true;
        log_info("rank %d copies messages into slots from now on: %s", network->job.rank,
                 fail_sentence());
        return false;
    }
    return true;
}

/* The oldest zero-copy send is over: did all rails complete it? */
static bool is_over(const struct verbs_peer *peer, const struct verbs_zcopy *zcopy)
{
    for (int i = 0; i < peer->pairs; i++)
        if (peer->rail[i].queue.completed < zcopy->until[i])
            return false;
    return true;
}

static bool end_zcopies(struct verbs_peer *peer)
{
    bool ended = false;

    while (peer->zcopy_count && is_over(peer, zcopy_at(peer, 0))) {
        give_regions(peer, zcopy_at(peer, 0));
        peer->first_zcopy = (peer->first_zcopy + 1) % verbs_zcopies_room(peer->network);
        peer->zcopy_count--;
        peer->network->zcopy--;
        ended = true;
    }
    return ended;
}

bool verbs_zcopy_collect(struct verbs_peer *peer)
{
    for (int i = 0; i < peer->pairs && peer->zcopy_count; i++)
        verbs_queue_poll(&peer->rail[i].queue);
    return end_zcopies(peer);
}

/* The message is in its slot from now on. */
static void move_to_slot(struct verbs_peer *peer, struct verbs_message *message)
{
    memcpy(message->slot, message->payload, message->bytes);
    message->payload = message->slot;
    message->zcopy = false;
    peer->network->zcopy--;
}

struct verbs_zcopy *verbs_zcopy_begin(struct verbs_peer *peer, struct verbs_message *message)
{
    unsigned room = verbs_zcopies_room(peer->network);
    struct verbs_zcopy *zcopy;

    if (peer->zcopy_count == room)
        verbs_zcopy_collect(peer);
    if (peer->zcopy_count < room) {
        zcopy = zcopy_at(peer, peer->zcopy_count);
        *zcopy = (struct verbs_zcopy){.at = message->payload, .bytes = message->bytes};
        if (take_regions(peer, zcopy))
            return zcopy;
    }
    move_to_slot(peer, message);
    return NULL;
}

void verbs_zcopy_posted(struct verbs_peer *peer, struct verbs_zcopy *zcopy, unsigned rails)
{
    for (int i = 0; i < peer->pairs; i++)
        zcopy->until[i] = rails >> i & 1 ? peer->rail[i].queue.posted : 0;
    peer->zcopy_count++;
}

void verbs_zcopy_drop(struct verbs_peer *peer, int rail, struct verbs_memory *memory)
{
    for (unsigned i = 0; i < peer->zcopy_count; i++)
        verbs_memory_put(memory, zcopy_at(peer, i)->regions[rail]);
}

/* ---- Memory is about to be written ----------------------------------------------------------- */

static void move_aside(struct verbs_peer *peer, struct span span)
{
    const struct verbs_network *network = peer->network;

    for (int i = 0; i < network->job.channels; i++) {
        struct verbs_channel *channel = &peer->channels[i];
        unsigned at = channel->post_at;

        for (uint32_t number = channel->posted; number != channel->pushed; number++) {
            struct verbs_message *message = &channel->messages[at];

            if (message->zcopy && overlaps(span, message->payload, message->bytes))
                move_to_slot(peer, message);
            at = at + 1 == (unsigned)network->job.slots ? 0 : at + 1;
        }
    }
}

static bool reads(const struct verbs_peer *peer, struct span span)
{
    for (unsigned i = 0; i < peer->zcopy_count; i++)
        if (overlaps(span, zcopy_at(peer, i)->at, zcopy_at(peer, i)->bytes))
            return true;
    return false;
}

static void stop(struct verbs_peer *peer)
{
    for (int i = 0; i < peer->pairs; i++)
        verbs_queue_stop(&peer->rail[i].queue);
}

/* Looks at completions; false: they will never come. */
static bool attend(struct verbs_peer *peer)
{
    bool fine = true;

    if (verbs_zcopy_collect(peer))
        return true;
    for (int i = 0; i < peer->pairs; i++) {
        struct verbs_queue *queue = &peer->rail[i].queue;

        verbs_queue_attend(queue, clock_seconds(), peer->network->patience);
        fine &= !verbs_queue_failed(queue);
    }
    if (peer->network->soft)
        sched_yield();
    return fine;
}

void verbs_zcopy_reclaim(struct verbs_network *network, const void *at, size_t bytes)
{
    struct span span = {(uintptr_t)at, (uintptr_t)at + bytes};

    for (int rank = 0; rank < network->job.size && network->zcopy; rank++) {
        struct verbs_peer *peer = network->peers[rank];

        if (!peer)
            continue;
        move_aside(peer, span);
        while (reads(peer, span))
            if (!attend(peer)) {
                stop(peer); /* the call finds out why */
                break;
            }
    }
}

void verbs_zcopy_forsake(struct verbs_peer *peer)
{
    move_aside(peer, (struct span){0, UINTPTR_MAX});
    verbs_zcopy_collect(peer);
    if (peer->zcopy_count)
        stop(peer);
}

void verbs_zcopy_end(struct verbs_network *network)
{
    for (int rank = 0; rank < network->job.size && network->zcopy; rank++)
        if (network->peers[rank])
            verbs_zcopy_forsake(network->peers[rank]);
}
