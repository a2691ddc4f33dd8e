/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs.c - the network of RDMA connections of one communicator. */
#include "transport/verbs/inside.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "transport/memory/heap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const uint8_t CARD_VERSION = 4;
enum { IDLE_LOOKS = 16 };      /* looks in vain before the kernel gets our processor */
static const double DRAIN = 1; /* seconds at closing until what is under way is given up */

/* ---- Progress -------------------------------------------------------------------------------- */

static rondo_result call_peers(struct verbs_network *network)
{
    rondo_result result = RONDO_OK;

    network->wanting = false;
    for (int rank = 0; rank < network->job.size && !result; rank++)
        if (network->peers[rank] && network->peers[rank]->owes)
            result = verbs_meet(network->peers[rank]);
    return result;
}

static rondo_result read_notes(struct verbs_network *network)
{
    rondo_result result = RONDO_OK;

    network->noted = false;
    for (int rank = 0; rank < network->job.size; rank++) {
        struct verbs_peer *peer = network->peers[rank];

        for (int i = 0; peer && i < peer->note_count && !result; i++)
            result = verbs_meet_note(peer, peer->notes[i].bytes, peer->notes[i].count);
        if (peer)
            peer->note_count = 0;
    }
    return result;
}

static rondo_result progress(struct network *base, bool *ret_moved)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    rondo_result result = RONDO_OK;

    *ret_moved = false;
    if (network->noted) {
        *ret_moved = true;
        result = read_notes(network);
    }
    if (network->wanting && !result)
        result = call_peers(network);
    for (int i = 0; i < network->active_count && !result; i++) {
        struct verbs_peer *peer = network->active[i];

        result = verbs_take(peer, ret_moved);
        if (peer->owes)
            *ret_moved |= verbs_give(peer);
        if (peer->loan_count)
            *ret_moved |= verbs_lent_collect(peer);
    }
    network->idle = *ret_moved ? 0 : network->idle + 1;
    if (network->soft && network->idle > IDLE_LOOKS)
        sched_yield();
    return result;
}

static bool flushed(struct network *base, int *ret_peer)
{
    const struct verbs_network *network = (const struct verbs_network *)(const void *)base;

    for (int rank = 0; rank < network->job.size; rank++)
        if (network->peers[rank] &&
            (network->peers[rank]->owes || network->peers[rank]->loan_count)) {
            if (ret_peer)
                *ret_peer = rank;
            return false;
        }
    return true;
}

/* Nap for a short while: the adapter writes what comes into memory, so nothing could wake us. */
static void doze(struct network *base, double seconds)
{
    const double longest = 50e-6;
    struct timespec nap = {0, (long)((seconds < longest ? seconds : longest) * 1e9)};

    (void)base;
    nanosleep(&nap, NULL);
}

static rondo_result watch(struct network *base, int rank)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    struct verbs_peer *peer = network->peers[rank];
    struct network *control = network->job.control;
    rondo_result result = control->ops->watch(control, rank);

    if (result) {
        base->culprit = control->culprit;
        return result;
    }
    if (!peer || peer->state < VERBS_HEARD)
        return RONDO_OK;
    base->culprit = rank;
    for (int i = 0; i < peer->pairs && !result; i++)
        result = verbs_device_check(peer->rail[i].queue.device);
    return result ? result : verbs_check_queues(peer, clock_seconds());
}

/* The control network tells the peers; here only the closing need not wait for anybody. */
static void tell(struct network *base, const struct network_failure *failure)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;

    (void)failure;
    atomic_store_explicit(&network->broken, true, memory_order_relaxed);
}

static void let_go(struct network *base)
{
    verbs_lent_end((struct verbs_network *)(void *)base);
}

/* ---- Closing --------------------------------------------------------------------------------- */

/* Has the adapter sent all that was posted to the peer? It would forget the rest with the queue. */
static bool drained(struct verbs_peer *peer)
{
    bool all = true;

    for (int i = 0; i < peer->pairs; i++) {
        struct verbs_queue *queue = &peer->rail[i].queue;

        verbs_queue_poll(queue);
        all &= verbs_queue_idle(queue) || verbs_queue_failed(queue);
    }
    return all;
}

/* A peer that has closed its end has all that it wanted, and acknowledges nothing any more. */
static bool has_left(const struct verbs_peer *peer)
{
    struct network *control = peer->network->job.control;

    return control->ops->watch(control, peer->rank) != RONDO_OK;
}

static void drain(struct verbs_network *network)
{
    double end = clock_seconds() + DRAIN;
    struct network *base = &network->base, *control = network->job.control;
    bool all = atomic_load_explicit(&network->broken, memory_order_relaxed), moved;

    for (int i = 0; i < network->active_count && !all; i++)
        for (int rail = 0; rail < network->active[i]->pairs; rail++)
            if (!verbs_queue_idle(&network->active[i]->rail[rail].queue))
                verbs_queue_probe(&network->active[i]->rail[rail].queue);
    while (!all) {
        all = true;
        for (int i = 0; i < network->active_count; i++)
            all &= drained(network->active[i]) || has_left(network->active[i]);
        if (all || clock_seconds() > end || control->ops->progress(control, &moved))
            return;
        doze(base, DRAIN);
    }
}

static void free_peer(struct verbs_peer *peer)
{
    struct verbs_network *network;

    if (!peer)
        return;
    network = peer->network;
    verbs_part(peer);
    heap_free(peer->control); /* NULL: it never came to that */
    if (peer->lanes)
        for (int i = 0; i < network->job.lanes; i++)
            free(peer->lanes[i].messages);
    free(peer->lanes);
    free(peer->loans);
    free(peer);
}

static void close_network(struct network *base)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;

    if (!network)
        return;
    drain(network);
    for (int rank = 0; network->peers && rank < network->job.size; rank++)
        free_peer(network->peers[rank]);
    verbs_rails_close();
    free(network->peers);
    free(network->active);
    free(network);
}

static const struct network_ops ops = {
    .name = "verbs",
    .progress = progress,
    .flushed = flushed,
    .doze = doze,
    .watch = watch,
    .tell = tell,
    .note = NULL,
    .let_go = let_go,
    .close = close_network,
};

/* ---- Opening --------------------------------------------------------------------------------- */

rondo_result verbs_open(struct verbs_card *ret_card, struct network **ret_network)
{
    struct verbs_network *network = calloc(1, sizeof(*network));
    rondo_result result;

    if (!network)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    network->base = (struct network){.ops = &ops, .culprit = -1};
    result = setting_read_seconds(SETTING_TCP_PATIENCE, &network->patience);
    if (!result)
        result = verbs_rails_open(&network->rails);
    if (result) {
        free(network);
        return result;
    }
    for (int i = 0; i < network->rails.count; i++)
        network->soft |= network->rails.device[i]->soft;
    *ret_card = (struct verbs_card){.rails = (uint8_t)network->rails.count,
                                    .ethernet = network->rails.device[0]->ethernet,
                                    .version = CARD_VERSION};
    *ret_network = &network->base;
    return RONDO_OK;
}

bool verbs_wants_long_slots(const struct network *base, size_t bytes)
{
    const struct verbs_network *network = (const struct verbs_network *)(const void *)base;
    struct rlimit limit = {0};
    bool all_soft = true;

    for (int i = 0; i < network->rails.count; i++)
        all_soft &= network->rails.device[i]->soft;
    /* Half of what may be pinned is left to others. */
    return all_soft && !getrlimit(RLIMIT_MEMLOCK, &limit) && bytes <= limit.rlim_cur / 2;
}

rondo_result verbs_start(struct network *base, const struct verbs_job *job)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    size_t size = (size_t)job->size;

    network->job = *job;
    network->owner = *job->owner;
    network->job.owner = &network->owner;
    /* Who has filled all slots waits until half of them are free (step_wait_credit()), so less
     * than half may be kept back for ever. */
    network->batch = job->slots >= 4 ? (unsigned)job->slots / 2 : 1;
    network->cells =
        (unsigned)job->lanes * ((unsigned)job->slots + (unsigned)job->slots / network->batch);
    network->peers = calloc(size, sizeof(struct verbs_peer *));
    network->active = calloc(size, sizeof(struct verbs_peer *));
    if (!network->peers || !network->active)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    return RONDO_OK;
}

static rondo_result make_lanes(struct verbs_peer *peer)
{
    const struct verbs_network *network = peer->network;

    peer->lanes = calloc((size_t)network->job.lanes, sizeof(*peer->lanes));
    peer->loans = calloc(verbs_loans_room(network), sizeof(*peer->loans));
    for (int i = 0; peer->lanes && i < network->job.lanes; i++) {
        struct verbs_lane *lane = &peer->lanes[i];

        *lane = (struct verbs_lane){
            .base = {.ops = &verbs_connection_ops, .peer = peer->rank, .lane = i},
            .peer = peer,
            .messages = calloc((size_t)network->job.slots, sizeof(*lane->messages)),
            .inbox = peer->inbox + (size_t)i * verbs_ring_bytes(network),
            .outbox = peer->outbox + (size_t)i * verbs_ring_bytes(network)};
        if (!lane->messages)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    }
    if (!peer->lanes || !peer->loans)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    return RONDO_OK;
}

static void fill_links(struct verbs_peer *peer, struct link_out *out, struct link_in *in)
{
    const struct verbs_network *network = peer->network;
    size_t stride = link_stride(network->job.slot_bytes);

    for (int i = 0; i < network->job.lanes; i++) {
        int at = i * network->job.size + peer->rank;
        struct verbs_lane *lane = &peer->lanes[i];

        out[at] = (struct link_out){.slots = lane->outbox,
                                    .credit = &lane->out_credit,
                                    .connection = &lane->base,
                                    .stride = stride,
                                    .slot_count = (uint32_t)network->job.slots};
        in[at] = (struct link_in){.slots = lane->inbox,
                                  .credit = &lane->in_credit,
                                  .connection = &lane->base,
                                  .stride = stride,
                                  .slot_count = (uint32_t)network->job.slots};
    }
}

rondo_result verbs_connect_links(struct network *base, int rank, struct link_out *out,
                                 struct link_in *in)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    struct verbs_peer *peer = calloc(1, sizeof(*peer));
    size_t control = verbs_control_bytes(network), box = verbs_box_bytes(network);
    rondo_result result;
    void *memory = NULL;

    if (!peer)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    network->peers[rank] = peer; /* closing the network frees it */
    peer->network = network;
    peer->rank = rank;
    result = heap_alloc(control + 2 * box, &memory);
    if (result)
        return result;
    peer->control = memory;
    peer->inbox = peer->control + control;
    peer->outbox = peer->inbox + box;
    result = make_lanes(peer);
    if (!result)
        fill_links(peer, out, in);
    return result;
}

bool verbs_reaches(const struct verbs_card *own, const struct verbs_card *peer, const char **why)
{
    if (!own->rails || !peer->rails)
        *why = "one of them has no RDMA";
    else if (own->ethernet != peer->ethernet)
        *why = "their RDMA devices are on different kinds of network";
    else if (own->version != peer->version)
        *why = "they run different versions of Rondo";
    else
        return true;
    return false;
}

void verbs_note(struct network *base, int rank, const void *bytes, size_t count)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    struct verbs_peer *peer = rank >= 0 && rank < network->job.size ? network->peers[rank] : NULL;
    int at;

    if (!peer) /* of a rank that we are not linked to by verbs */
        return;
    at = peer->note_count < 2 ? peer->note_count++ : 1;
    peer->notes[at].count = count <= NETWORK_NOTE ? count : 0; /* 0 is refused when it is read */
    memcpy(peer->notes[at].bytes, bytes, peer->notes[at].count);
    network->noted = true;
}
