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

static const uint8_t ENDPOINT_VERSION = 5;
enum { IDLE_LOOKS = 16 }; /* looks in vain before the kernel gets our processor */

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
        if (peer->zcopy_count)
            *ret_moved |= verbs_zcopy_collect(peer);
    }
    network->idle = *ret_moved ? 0 : network->idle + 1;
    if (network->soft && network->idle > IDLE_LOOKS)
        sched_yield();
    return result;
}

static bool owes(struct network *base, int rank)
{
    const struct verbs_network *network = (const struct verbs_network *)(const void *)base;
    const struct verbs_peer *peer = network->peers[rank];

    return peer && (peer->owes || (peer->zcopy_count && !peer->forsaken));
}

static bool flushed(struct network *base, int *ret_peer)
{
    const struct verbs_network *network = (const struct verbs_network *)(const void *)base;

    for (int rank = 0; rank < network->job.size; rank++)
        if (owes(base, rank)) {
            if (ret_peer)
                *ret_peer = rank;
            return false;
        }
    return true;
}

/* A rank that leaves a failed call stops its queues, and so do its peers: what queues report after
 * that says nothing of who lives. */
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
    if (!peer || peer->state < VERBS_HEARD ||
        (atomic_load_explicit(&network->broken, memory_order_relaxed) && !peer->lost))
        return RONDO_OK;
    for (int i = 0; i < peer->pairs && !result; i++)
        result = verbs_device_check(peer->rail[i].queue.device);
    if (result)
        return verbs_blame_own(peer, result);
    base->culprit = rank;
    result = verbs_check_queues(peer, clock_seconds());
    peer->lost = result != RONDO_OK;
    return result;
}

/* The control network tells the peers; here only the closing need not wait for anybody. */
static void tell(struct network *base, const struct network_failure *failure)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    struct verbs_peer *peer = failure->forsakes ? network->peers[failure->culprit] : NULL;

    if (!failure->forsakes)
        atomic_store_explicit(&network->broken, true, memory_order_relaxed);
    else if (peer && !peer->forsaken)
        verbs_zcopy_forsake(peer);
    if (peer)
        peer->forsaken = true;
}

static void let_go(struct network *base)
{
    verbs_zcopy_end((struct verbs_network *)(void *)base);
}

/* ---- Closing --------------------------------------------------------------------------------- */

/* True if the adapter has sent all that was posted to the peer. It would forget the rest with the
 * queue. */
static bool drained(struct verbs_peer *peer)
{
    bool all = true;

    for (int i = 0; i < peer->pairs; i++) {
        struct verbs_queue *queue = &peer->rail[i].queue;

        verbs_queue_poll(queue);
        if (verbs_queue_idle(queue))
            continue;
        verbs_queue_attend(queue, clock_seconds(), peer->network->patience);
        all &= verbs_queue_failed(queue);
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
    double end = clock_seconds() + PATIENCE_CLOSE;
    struct network *control = network->job.control;
    bool all = atomic_load_explicit(&network->broken, memory_order_relaxed), moved;

    for (int i = 0; i < network->active_count && !all; i++)
        for (int rail = 0; rail < network->active[i]->pairs; rail++)
            if (!verbs_queue_idle(&network->active[i]->rail[rail].queue))
                verbs_queue_probe(&network->active[i]->rail[rail].queue);
    while (!all) {
        all = true;
        for (int i = 0; i < network->active_count; i++)
            all &= network->active[i]->forsaken || drained(network->active[i]) ||
                   has_left(network->active[i]);
        if (all || control->ops->progress(control, &moved))
            return;
        if (clock_seconds() > end) {
            log_warn("rank %d has closed before its peers had acknowledged all that it sent",
                     network->job.rank);
            return;
        }
        doze_for(DOZE_PEER); /* nothing could wake us */
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
    if (peer->channels)
        for (int i = 0; i < network->job.channels; i++)
            free(peer->channels[i].messages);
    free(peer->channels);
    free(peer->zcopies);
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

static void hear(struct network *base, int rank, const void *bytes, size_t count)
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

static const struct network_ops ops = {
    .name = "verbs",
    .progress = progress,
    .flushed = flushed,
    .owes = owes,
    .watch = watch,
    .tell = tell,
    .hear = hear,
    .try_device = verbs_try_device,
    .let_go = let_go,
    .close = close_network,
};

/* ---- Opening --------------------------------------------------------------------------------- */

/* True if long messages are worth more slots' memory, and so many bytes may be pinned. They are
 * where the kernel moves the bytes: each message costs two system calls' worth of packets that
 * carry nothing. Half of what may be pinned is left to others. */
static bool wants_long_slots(const struct verbs_network *network, size_t bytes)
{
    struct rlimit limit = {0};
    bool all_soft = true;

    for (int i = 0; i < network->rails.count; i++)
        all_soft &= network->rails.device[i]->soft;
    return all_soft && !getrlimit(RLIMIT_MEMLOCK, &limit) && bytes <= limit.rlim_cur / 2;
}

/* Nobody checks what RDMA writes. */
static rondo_result check_security(const struct network_wish *wish)
{
    const char *name = seal_mode_name(wish->security);

    if (wish->security == SEAL_NONE)
        return RONDO_OK;
    if (!wish->must)
        log_info("rank %d does without RDMA, as RONDO_SECURITY is %s", wish->rank, name);
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "RONDO_TRANSPORT=verbs and RONDO_SECURITY=%s exclude each other: nobody "
                      "checks what RDMA writes. Leave the transport to auto, or protect the "
                      "network by other means.",
                      name);
}

static rondo_result open_network(const struct network_wish *wish, void *ret_part,
                                 struct network **ret_network)
{
    struct verbs_endpoint *endpoint = ret_part;
    struct verbs_network *network;
    rondo_result result = check_security(wish);

    if (result)
        return result;
    network = calloc(1, sizeof(*network));
    if (!network)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    network->base = (struct network){.ops = &ops, .culprit = -1};
    network->traffic_class = wish->traffic_class;
    result = setting_read_seconds(SETTING_TCP_PATIENCE, &network->patience);
    if (!result)
        result = verbs_rails_open(&network->rails);
    if (result) {
        free(network);
        return result;
    }
    for (int i = 0; i < network->rails.count; i++)
        network->soft |= network->rails.device[i]->soft;
    *endpoint = (struct verbs_endpoint){.rails = (uint8_t)network->rails.count,
                                        .ethernet = network->rails.device[0]->ethernet,
                                        .version = ENDPOINT_VERSION,
                                        .long_slots = wants_long_slots(network, wish->long_rings)};
    *ret_network = &network->base;
    return RONDO_OK;
}

static rondo_result start(struct network *base, const struct network_job *job)
{
    struct verbs_network *network = (struct verbs_network *)(void *)base;
    size_t size = (size_t)job->size;

    network->job = *job;
    /* Who has filled all slots waits until half of them are free (step_wait_credit()), so less
     * than half may be kept back for ever. */
    network->batch = job->slots >= 4 ? (unsigned)job->slots / 2 : 1;
    network->cells =
        (unsigned)job->channels * ((unsigned)job->slots + (unsigned)job->slots / network->batch);
    network->peers = calloc(size, sizeof(struct verbs_peer *));
    network->active = calloc(size, sizeof(struct verbs_peer *));
    if (!network->peers || !network->active)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    return RONDO_OK;
}

static rondo_result make_channels(struct verbs_peer *peer)
{
    const struct verbs_network *network = peer->network;

    peer->channels = calloc((size_t)network->job.channels, sizeof(*peer->channels));
    peer->zcopies = calloc(verbs_zcopies_room(network), sizeof(*peer->zcopies));
    for (int i = 0; peer->channels && i < network->job.channels; i++) {
        struct verbs_channel *channel = &peer->channels[i];

        *channel = (struct verbs_channel){
            .base = {.ops = &verbs_connection_ops, .peer = peer->rank, .channel = i},
            .peer = peer,
            .messages = calloc((size_t)network->job.slots, sizeof(*channel->messages)),
            .inbox = peer->inbox + (size_t)i * verbs_ring_bytes(network),
            .outbox = peer->outbox + (size_t)i * verbs_ring_bytes(network)};
        if (!channel->messages)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    }
    if (!peer->channels || !peer->zcopies)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    return RONDO_OK;
}

static void fill_links(struct verbs_peer *peer, struct link_out *out, struct link_in *in)
{
    const struct verbs_network *network = peer->network;
    size_t stride = link_stride(network->job.slot_bytes);

    for (int i = 0; i < network->job.channels; i++) {
        int at = i * network->job.size + peer->rank;
        struct verbs_channel *channel = &peer->channels[i];

        out[at] = (struct link_out){.slots = channel->outbox,
                                    .credit = &channel->out_credit,
                                    .connection = &channel->base,
                                    .stride = stride,
                                    .slot_count = (uint32_t)network->job.slots};
        in[at] = (struct link_in){.slots = channel->inbox,
                                  .credit = &channel->in_credit,
                                  .connection = &channel->base,
                                  .stride = stride,
                                  .slot_count = (uint32_t)network->job.slots};
    }
}

static rondo_result connect_pair(const struct transport_pair *pair, struct link_out *out,
                                 struct link_in *in)
{
    struct verbs_network *network = (struct verbs_network *)(void *)pair->network;
    struct verbs_peer *peer = calloc(1, sizeof(*peer));
    size_t control = verbs_control_bytes(network), box = verbs_box_bytes(network);
    rondo_result result;
    void *memory = NULL;

    if (!peer)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for RDMA connections.");
    network->peers[pair->peer->rank] = peer; /* closing the network frees it */
    peer->network = network;
    peer->rank = pair->peer->rank;
    peer->page = pair->page;
    result = heap_alloc(control + 2 * box, &memory);
    if (result)
        return result;
    peer->control = memory;
    peer->inbox = peer->control + control;
    peer->outbox = peer->inbox + box;
    result = make_channels(peer);
    if (!result)
        fill_links(peer, out, in);
    return result;
}

static bool can_connect(const struct transport_pair *pair, const char **why)
{
    const struct verbs_endpoint *own = pair->own_part, *peer = pair->peer_part;

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

static enum link_length length(const void *own_part, const void *peer_part)
{
    const struct verbs_endpoint *own = own_part, *peer = peer_part;

    return own->long_slots && peer->long_slots ? LINK_LONG : LINK_SAME_LENGTH;
}

const struct transport_ops verbs_transport = {
    .name = "verbs",
    .can_connect = can_connect,
    .connect = connect_pair,
    .part_bytes = sizeof(struct verbs_endpoint),
    .open = open_network,
    .start = start,
    .length = length,
    .control = &tcp_transport,
    .optional = true,
};
