/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - messages from a writer's slots into the reader's, and slots given back.
 *
 * No flow control is needed but that of the slots. A channel has at most `slots` messages that were
 * not given back, and a message is given back only after its cell was read, as were all before it.
 * Without a message that way, what was given back is told in batches, so at most slots / batch
 * cells that tell it are not read. There are as many cells (and receives for immediates) as that
 * makes for all channels of a peer: the cell that is written next is never one that was not read.
 */
#include "transport/verbs/inside.h"

#include "base/fail.h"

#include <string.h>

enum {
    STRIPE_FROM = 32768, /* bytes of a message from which all rails carry it */
    STRIPE_GRAIN = 4096
};

static unsigned after(const struct verbs_network *network, unsigned at)
{
    return at + 1 == (unsigned)network->job.slots ? 0 : at + 1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static size_t slot_offset(const struct verbs_channel *channel, unsigned at)
{
    const struct verbs_network *network = channel->peer->network;

    return (size_t)channel->base.channel * verbs_ring_bytes(network) +
           at * link_stride(network->job.slot_bytes);
}

/* Where some of a message's payload is, and where it goes to. */
static struct verbs_write locate(const struct verbs_channel *channel, int rail_at,
                                 const struct verbs_message *message,
                                 const struct verbs_zcopy *zcopy, size_t done)
{
    const struct verbs_peer *peer = channel->peer;
    const struct verbs_rail *rail = &peer->rail[rail_at];
    size_t at = slot_offset(channel, channel->post_at) + offsetof(struct link_slot, payload) + done;
    uint64_t outbox = peer->device.address + verbs_box_bytes(peer->network);

    if (message->device)
        return (struct verbs_write){.from = (const void *)(uintptr_t)(outbox + at),
                                    .local_key = rail->device_outbox->lkey,
                                    .to = peer->peer_device + at,
                                    .remote_key = rail->peer.device_key,
                                    .device = true};
    return (struct verbs_write){.from = message->payload + done,
                                .local_key =
                                    (zcopy ? zcopy->regions[rail_at] : rail->outbox)->mr->lkey,
                                .to = peer->peer_inbox + at,
                                .remote_key = rail->peer.data_key};
}

/* Payload into the peer's slot, over one rail or all. Returns which rails carry some of it. */
static unsigned write_payload(struct verbs_channel *channel, const struct verbs_message *message,
                              const struct verbs_zcopy *zcopy)
{
    struct verbs_peer *peer = channel->peer;
    int pairs = message->bytes >= STRIPE_FROM ? peer->pairs : 1;
    size_t grains = (message->bytes + STRIPE_GRAIN - 1) / STRIPE_GRAIN;
    size_t share = (grains + (size_t)pairs - 1) / (size_t)pairs * STRIPE_GRAIN;
    unsigned rails = 0;

    for (size_t done = 0, step = 0; done < message->bytes; done += share, step++) {
        int at = (peer->home + (int)step) % peer->pairs;
        struct verbs_rail *rail = &peer->rail[at];
        size_t left = message->bytes - done;
        struct verbs_write data = locate(channel, at, message, zcopy, done);
        struct verbs_write last = {.immediate = true, .signalled = zcopy != NULL};

        data.bytes = (uint32_t)(left < share ? left : share);
        verbs_queue_add(&rail->queue, &data);
        if (at != peer->home) { /* at home the cell is the last */
            verbs_queue_add(&rail->queue, &last);
            verbs_queue_flush(&rail->queue);
        }
        rails |= 1u << at;
    }
    return rails;
}

/* Seal peer->own and write it. What an adapter does not take along with the request, it reads from
 * memory that stays as it is until the peer has read the cell. */
static void write_cell(struct verbs_peer *peer, bool signalled)
{
    const struct verbs_network *network = peer->network;
    struct verbs_rail *home = &peer->rail[peer->home];
    size_t at = (size_t)peer->cell_out * VERBS_CELL;
    struct verbs_write write = {.from = &peer->own,
                                .bytes = verbs_cell_bytes(&peer->own),
                                .local_key = home->control->mr->lkey,
                                .to = peer->peer_control + at,
                                .remote_key = home->peer.control_key,
                                .immediate = peer->own.rails != 0,
                                .signalled = signalled};

    verbs_cell_seal(&peer->own, peer->cells_out++);
    peer->cell_out = peer->cell_out + 1 == network->cells ? 0 : peer->cell_out + 1;
    if (write.bytes > home->queue.inlined) {
        write.from = peer->control + verbs_half(network) + at;
        memcpy(peer->control + verbs_half(network) + at, &peer->own, write.bytes);
    }
    verbs_queue_add(&home->queue, &write);
    verbs_queue_flush(&home->queue);
}

/* True if every rail to the peer has room for one message. */
static bool has_room(struct verbs_peer *peer)
{
    for (int i = 0; i < peer->pairs; i++) {
        struct verbs_queue *queue = &peer->rail[i].queue;

        if (!verbs_queue_room(queue, 2))
            verbs_queue_poll(queue);
        if (!verbs_queue_room(queue, 2))
            return false;
    }
    return true;
}

static void post_message(struct verbs_channel *channel, struct verbs_message *message)
{
    struct verbs_peer *peer = channel->peer;
    struct verbs_cell *cell = &peer->own;
    struct verbs_zcopy *zcopy = message->zcopy ? verbs_zcopy_begin(peer, message) : NULL;

    cell->flag = message->flag;
    cell->bytes = (uint32_t)message->bytes;
    cell->channel = (uint16_t)channel->base.channel;
    cell->inlined = message->inlined;
    cell->rails = 0;
    call_header_say(peer->network->job.owner.page, cell->call_header);
    cell->returned = channel->returned;
    cell->credit = 0;
    cell->device = message->device;
    if (message->inlined)
        memcpy(cell->payload, message->payload, message->bytes);
    else
        cell->rails = (uint8_t)write_payload(channel, message, zcopy);
    write_cell(peer, zcopy != NULL);
    if (zcopy)
        verbs_zcopy_posted(peer, zcopy, cell->rails);
    channel->credited = channel->returned;
    channel->post_at = after(peer->network, channel->post_at);
    channel->posted++;
}

/* Tell how many messages were given back, when no message of ours tells it for too long. */
static void post_credit(struct verbs_channel *channel)
{
    channel->peer->own = (struct verbs_cell){
        .channel = (uint16_t)channel->base.channel, .returned = channel->returned, .credit = 1};
    write_cell(channel->peer, false);
    channel->credited = channel->returned;
}

bool verbs_give(struct verbs_peer *peer)
{
    const struct verbs_network *network = peer->network;
    bool gave = false;

    if (peer->state != VERBS_JOINED)
        return false;
    peer->owes = false;
    for (int i = 0; i < network->job.channels; i++) {
        struct verbs_channel *channel = &peer->channels[i];

        while (channel->posted != channel->pushed && has_room(peer)) {
            post_message(channel, &channel->messages[channel->post_at]);
            gave = true;
        }
        if (channel->returned - channel->credited >= network->batch && has_room(peer)) {
            post_credit(channel);
            gave = true;
        }
        peer->owes |= channel->posted != channel->pushed ||
                      channel->returned - channel->credited >= network->batch;
    }
    return gave;
}

/* Something is to be posted: at once if that is possible, else by progress(). */
static void want(struct verbs_peer *peer)
{
    peer->owes = true;
    if (peer->state == VERBS_APART)
        peer->network->wanting = true;
    else
        verbs_give(peer);
}

/* Most messages find nothing that waits before them. */
static void append(struct verbs_channel *channel, struct verbs_message *message)
{
    struct verbs_peer *peer = channel->peer;
    unsigned at = channel->push_at;
    bool first = channel->posted == channel->pushed;

    channel->push_at = after(peer->network, at);
    channel->pushed++;
    if (first && peer->state == VERBS_JOINED && has_room(peer)) {
        post_message(channel, message);
        return;
    }
    channel->messages[at] = *message;
    want(peer);
}

static void push(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag)
{
    struct verbs_channel *channel = (struct verbs_channel *)(void *)connection;
    struct verbs_message message = {.payload = payload,
                                    .slot = slot->payload,
                                    .bytes = bytes,
                                    .flag = flag,
                                    .inlined = payload == slot->head.payload};

    message.zcopy = !message.inlined && payload != slot->payload;
    channel->peer->network->zcopy += message.zcopy;
    append(channel, &message);
}

/* The number of the slot says where the payload is. */
static void push_device(struct connection *connection, struct link_slot *slot, const char *payload,
                        size_t bytes, uint64_t flag)
{
    (void)slot;
    append(
        (struct verbs_channel *)(void *)connection,
        &(struct verbs_message){.payload = payload, .bytes = bytes, .flag = flag, .device = true});
}

/* Both inboxes and outboxes of a peer lie side by side. */
static bool rings(struct connection *connection, struct connection_rings *ret_rings)
{
    struct verbs_channel *channel = (struct verbs_channel *)(void *)connection;
    struct verbs_peer *peer = channel->peer;
    size_t box = verbs_box_bytes(peer->network);
    size_t at = (size_t)connection->channel * verbs_ring_bytes(peer->network);

    if (peer->state < VERBS_HEARD) {
        want(peer);
        return false;
    }
    *ret_rings = (struct connection_rings){.memory = peer->inbox, .bytes = 2 * box};
    if (peer->uses_device) {
        ret_rings->in = peer->device.address + at;
        ret_rings->out = peer->device.address + box + at;
    }
    return true;
}

static void give_back(struct connection *connection, uint32_t received)
{
    struct verbs_channel *channel = (struct verbs_channel *)(void *)connection;

    channel->returned = received;
    if (received - channel->credited < channel->peer->network->batch)
        return;
    want(channel->peer);
}

static void reclaim(struct connection *connection, const void *at, size_t bytes)
{
    verbs_zcopy_reclaim(((struct verbs_channel *)(void *)connection)->peer->network, at, bytes);
}

static bool takes(struct connection *connection, const void *payload, size_t bytes)
{
    const struct verbs_peer *peer = ((struct verbs_channel *)(void *)connection)->peer;

    return !peer->forsaken && verbs_zcopy_takes(peer->network, payload, bytes);
}

const struct connection_ops verbs_connection_ops = {.push = push,
                                                    .give_back = give_back,
                                                    .reclaim = reclaim,
                                                    .takes = takes,
                                                    .rings = rings,
                                                    .push_device = push_device};

/* ---- Reading --------------------------------------------------------------------------------- */

static rondo_result refuse(struct verbs_peer *peer, const char *what)
{
    peer->network->base.culprit = peer->rank;
    return rondo_fail(RONDO_ERROR_PEER,
                      "What rank %d wrote to rank %d by RDMA makes no sense (%s); do all ranks run "
                      "the same Rondo?",
                      peer->rank, peer->network->job.rank, what);
}

/* True if all payload of the cell is in place. Looks at completions only if they are waited for. */
static bool is_complete(struct verbs_peer *peer, const struct verbs_cell *cell)
{
    bool complete = true;

    for (int i = 0; i < peer->pairs && cell->rails; i++) {
        struct verbs_rail *rail = &peer->rail[i];

        if (!(cell->rails >> i & 1) || rail->queue.arrived >= rail->expected)
            continue;
        verbs_queue_poll(&rail->queue);
        complete &= rail->queue.arrived >= rail->expected;
    }
    return complete;
}

static rondo_result check_cell(struct verbs_peer *peer, const struct verbs_cell *cell)
{
    const struct verbs_network *network = peer->network;
    const struct verbs_channel *channel;

    if (cell->channel >= network->job.channels)
        return refuse(peer, "channel");
    channel = &peer->channels[cell->channel];
    if (cell->returned - channel->granted > channel->posted - channel->granted)
        return refuse(peer, "messages given back");
    if (cell->credit)
        return RONDO_OK;
    if ((uint32_t)cell->flag != channel->arrived + 1 ||
        channel->arrived - channel->returned >= (uint32_t)network->job.slots)
        return refuse(peer, "number of a message");
    if (cell->bytes > (cell->inlined ? LINK_INLINE : network->job.slot_bytes))
        return refuse(peer, "length");
    if (cell->device && !peer->uses_device)
        return refuse(peer, "memory of the device");
    if (cell->rails >> peer->pairs || (!cell->inlined && cell->bytes && !cell->rails))
        return refuse(peer, "rails");
    for (int i = 0; i < peer->pairs && cell->rails; i++)
        peer->rail[i].expected += cell->rails >> i & 1;
    return RONDO_OK;
}

static void deliver(struct verbs_peer *peer, const struct verbs_cell *cell)
{
    const struct verbs_network *network = peer->network;
    struct verbs_channel *channel = &peer->channels[cell->channel];
    struct link_slot *slot =
        (struct link_slot *)(void *)(channel->inbox +
                                     channel->arrive_at * link_stride(network->job.slot_bytes));

    channel->granted = cell->returned;
    /* Release, pairs with the acquire in step_wait_credit(). */
    atomic_store_explicit(&channel->out_credit.consumed, cell->returned, memory_order_release);
    if (cell->credit)
        return;
    if (cell->inlined)
        memcpy(slot->head.payload, cell->payload, cell->bytes);
    call_header_hear(peer->page, cell->call_header);
    channel->arrive_at = after(network, channel->arrive_at);
    channel->arrived++;
    /* Release, pairs with the acquire in step_wait_data(). */
    atomic_store_explicit(&slot->head.flag, cell->flag, memory_order_release);
}

/* Make the next cell the one that is due, if it is there. */
static rondo_result next_cell(struct verbs_peer *peer)
{
    const char *at = peer->control + (size_t)peer->cell_in * VERBS_CELL;
    const struct verbs_cell *cell = (const struct verbs_cell *)(const void *)at;
    rondo_result result;

    if (!verbs_cell_shows(cell, peer->cells_in) ||
        !verbs_cell_read(cell, peer->cells_in, &peer->due))
        return RONDO_OK;
    result = check_cell(peer, &peer->due);
    if (result)
        return result;
    peer->is_due = true;
    peer->cells_in++;
    peer->cell_in = peer->cell_in + 1 == peer->network->cells ? 0 : peer->cell_in + 1;
    return RONDO_OK;
}

rondo_result verbs_take(struct verbs_peer *peer, bool *ret_moved)
{
    for (;;) {
        rondo_result result = peer->is_due ? RONDO_OK : next_cell(peer);

        if (result || !peer->is_due || !is_complete(peer, &peer->due))
            return result;
        peer->is_due = false;
        deliver(peer, &peer->due);
        *ret_moved = true;
    }
}

rondo_result verbs_check_queues(struct verbs_peer *peer, double now)
{
    const struct verbs_network *network = peer->network;
    char text[512];

    for (int i = 0; i < peer->pairs; i++) {
        struct verbs_queue *queue = &peer->rail[i].queue;

        verbs_queue_poll(queue);
        /* A peer that is gone is noticed by what it does not acknowledge. */
        if (peer->state == VERBS_JOINED)
            verbs_queue_attend(queue, now, network->patience);
        if (!verbs_queue_failed(queue))
            continue;
        verbs_queue_describe(queue, text, sizeof(text));
        return rondo_fail(RONDO_ERROR_PEER, "Rank %d to rank %d, %s", network->job.rank, peer->rank,
                          text);
    }
    return RONDO_OK;
}
