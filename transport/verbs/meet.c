/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.c - two ranks get connected, when one of them has something to say.
 *
 *     rank a: hello { where its control memory and inbox are, its ports and queues }  ->
 *                                         <-  rank b: hello, when it has not said it yet
 *     who has heard a hello connects its queues and says:  joined
 *     who has heard "joined" may write: before, the peer's queue would drop it
 *
 * Both may begin. Ports are paired by the likeness of their addresses, so that rails of the same
 * network meet; both sides work out the same pairs.
 */
#include "transport/verbs/inside.h"

#include "base/fail.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum note_kind { NOTE_HELLO = 1, NOTE_JOINED };

/* A note of the control network. Fixed layout. */
struct note {
    uint8_t kind, rails, unused[6];
    uint64_t control, inbox; /* addresses in the sender's memory */
    uint64_t device;         /* of its inbox there, 0: none */
    struct verbs_port_endpoint ports[VERBS_RAILS];
};
_Static_assert(sizeof(struct note) <= NETWORK_NOTE, "a note must be short");

/* ---- Our side -------------------------------------------------------------------------------- */

static rondo_result open_rail(struct verbs_peer *peer, int index)
{
    const struct verbs_network *network = peer->network;
    struct verbs_device *device = network->rails.device[index];
    struct verbs_rail *rail = &peer->rail[index];
    unsigned channels = (unsigned)network->job.channels;
    rondo_result result;

    result = verbs_memory_get(&device->memory, peer->control, verbs_control_bytes(network),
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &rail->control);
    if (!result)
        result = verbs_memory_get(&device->memory, peer->inbox, verbs_box_bytes(network),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_RELAXED_ORDERING,
                                  &rail->inbox);
    if (!result)
        result = verbs_memory_get(&device->memory, peer->outbox, verbs_box_bytes(network),
                                  IBV_ACCESS_RELAXED_ORDERING, &rail->outbox);
    if (!result)
        result = verbs_queue_open(device, 2 * network->cells + 2 * channels + VERBS_SIGNAL,
                                  network->cells, &rail->queue);
    return result;
}

/* All ranks hear this sentence, and adapters have the same name on every host. */
rondo_result verbs_blame_own(struct verbs_peer *peer, rondo_result result)
{
    int rank = peer->network->job.rank;
    char sentence[FAIL_SENTENCE_MAX];

    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    peer->network->base.culprit = rank;
    return rondo_fail(result, "Rank %d to rank %d: %s", rank, peer->rank, sentence);
}

static rondo_result open_rails(struct verbs_peer *peer)
{
    rondo_result result = RONDO_OK;

    if (peer->rails)
        return RONDO_OK;
    for (int i = 0; i < peer->network->rails.count && !result; i++) {
        peer->rails = i + 1;
        result = open_rail(peer, i);
    }
    if (result) {
        verbs_part(peer);
        return verbs_blame_own(peer, result);
    }
    verbs_take_device(peer);
    return RONDO_OK;
}

static rondo_result say(struct verbs_peer *peer, enum note_kind kind)
{
    struct network *control = peer->network->job.control;
    struct note note = {.kind = (uint8_t)kind,
                        .rails = (uint8_t)peer->rails,
                        .control = (uintptr_t)peer->control,
                        .inbox = (uintptr_t)peer->inbox,
                        .device = peer->device.address};

    for (int i = 0; i < peer->rails; i++) {
        const struct verbs_rail *rail = &peer->rail[i];

        verbs_queue_endpoint(&rail->queue, &note.ports[i]);
        note.ports[i].data_key = rail->inbox->mr->rkey;
        note.ports[i].control_key = rail->control->mr->rkey;
        note.ports[i].device_key = rail->device_inbox ? rail->device_inbox->rkey : 0;
    }
    return control->ops->note(control, peer->rank, &note, sizeof(note));
}

rondo_result verbs_meet(struct verbs_peer *peer)
{
    rondo_result result;

    if (peer->state != VERBS_APART)
        return RONDO_OK;
    result = open_rails(peer);
    if (!result)
        result = say(peer, NOTE_HELLO);
    if (!result)
        peer->state = VERBS_CALLING;
    return result;
}

/* ---- Pairs ----------------------------------------------------------------------------------- */

/* Leading bits that two addresses share, on InfiniBand of their subnet prefixes: what follows there
 * are serial numbers. -1: different kinds of network. */
static int likeness(const struct verbs_port_endpoint *a, const struct verbs_port_endpoint *b)
{
    int bits = a->ethernet ? 128 : 64;

    if (a->ethernet != b->ethernet)
        return -1;
    for (int bit = 0; bit < bits; bit++)
        if ((a->gid[bit / 8] ^ b->gid[bit / 8]) >> (7 - bit % 8) & 1)
            return bit;
    return bits;
}

int verbs_meet_pairs(const struct verbs_port_endpoint *low, int lows,
                     const struct verbs_port_endpoint *high, int highs,
                     int ret_pairs[VERBS_RAILS][2])
{
    unsigned low_taken = 0, high_taken = 0;
    int pairs = 0, most;

    do {
        most = -1;
        for (int at = 0; at < lows * highs; at++) {
            int i = at / highs, j = at % highs, bits = likeness(&low[i], &high[j]);

            if ((low_taken >> i | high_taken >> j) & 1 || bits <= most)
                continue;
            most = bits;
            ret_pairs[pairs][0] = i;
            ret_pairs[pairs][1] = j;
        }
        if (most >= 0) {
            low_taken |= 1u << ret_pairs[pairs][0];
            high_taken |= 1u << ret_pairs[pairs++][1];
        }
    } while (most >= 0);
    return pairs;
}

/* Puts rails that have a partner first, in the order of the pairs. */
static void order_rails(struct verbs_peer *peer, const struct note *note)
{
    struct verbs_port_endpoint own[VERBS_RAILS];
    struct verbs_rail before[VERBS_RAILS], *after = peer->rail;
    bool low = peer->network->job.rank < peer->rank;
    int pairs[VERBS_RAILS][2];
    unsigned delivered = 0;

    memcpy(before, peer->rail, sizeof(before));
    for (int i = 0; i < peer->rails; i++)
        verbs_queue_endpoint(&before[i].queue, &own[i]);
    peer->pairs = verbs_meet_pairs(low ? own : note->ports, low ? peer->rails : note->rails,
                                   low ? note->ports : own, low ? note->rails : peer->rails, pairs);
    for (int i = 0; i < peer->pairs; i++) {
        int mine = pairs[i][low ? 0 : 1];

        delivered |= 1u << mine;
        *after = before[mine];
        after++->peer = note->ports[pairs[i][low ? 1 : 0]];
    }
    for (int i = 0; i < peer->rails; i++)
        if (!(delivered >> i & 1))
            *after++ = before[i];
    if (peer->pairs)
        peer->home = (peer->rank + peer->network->job.rank) % peer->pairs;
}

/* ---- Their side ------------------------------------------------------------------------------ */

static rondo_result join(struct verbs_peer *peer, const struct note *note)
{
    struct verbs_network *network = peer->network;
    rondo_result result = RONDO_OK;

    order_rails(peer, note);
    if (!peer->pairs) {
        network->base.culprit = peer->rank;
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "Rank %d has RDMA over Ethernet and rank %d over InfiniBand or the other "
                          "way round; RONDO_VERBS_DEVICES chooses.",
                          network->job.rank, peer->rank);
    }
    for (int i = 0; i < peer->pairs; i++)
        peer->rail[i].queue.traffic_class = network->traffic_class;
    for (int i = 0; i < peer->pairs && !result; i++)
        result = verbs_queue_connect(&peer->rail[i].queue, &peer->rail[i].peer);
    if (result)
        return verbs_blame_own(peer, result);
    peer->peer_control = note->control;
    peer->peer_inbox = note->inbox;
    peer->peer_device = note->device;
    peer->uses_device = peer->device.address && note->device;
    network->active[network->active_count++] = peer;
    peer->state = VERBS_HEARD;
    log_debug("rank %d is connected with rank %d over %d rails, %u bytes inline", network->job.rank,
              peer->rank, peer->pairs, peer->rail[0].queue.inlined);
    return say(peer, NOTE_JOINED);
}

static rondo_result hear_hello(struct verbs_peer *peer, const struct note *note)
{
    rondo_result result = verbs_meet(peer);

    if (result)
        return result;
    return join(peer, note);
}

rondo_result verbs_meet_note(struct verbs_peer *peer, const void *bytes, size_t count)
{
    struct note note = {0};

    if (count == sizeof(note))
        memcpy(&note, bytes, count);
    if (note.kind == NOTE_HELLO && peer->state <= VERBS_CALLING && note.rails >= 1 &&
        note.rails <= VERBS_RAILS)
        return hear_hello(peer, &note);
    if (note.kind == NOTE_JOINED && peer->state == VERBS_HEARD) {
        peer->state = VERBS_JOINED;
        return RONDO_OK;
    }
    peer->network->base.culprit = peer->rank;
    return rondo_fail(RONDO_ERROR_PEER,
                      "Rank %d says something about its RDMA that rank %d does not understand; do "
                      "all ranks run the same Rondo?",
                      peer->rank, peer->network->job.rank);
}

void verbs_part(struct verbs_peer *peer)
{
    for (int i = 0; i < peer->rails; i++) {
        struct verbs_rail *rail = &peer->rail[i];
        /* Which device it is was settled before pairs were made; they remember. */
        struct verbs_memory *memory = rail->queue.device ? &rail->queue.device->memory
                                                         : &peer->network->rails.device[i]->memory;

        verbs_queue_close(&rail->queue);
        verbs_zcopy_drop(peer, i, memory);
        verbs_memory_put(memory, rail->control);
        verbs_memory_put(memory, rail->inbox);
        verbs_memory_put(memory, rail->outbox);
    }
    verbs_give_device(peer);
    memset(peer->rail, 0, sizeof(peer->rail));
    peer->rails = peer->pairs = 0;
    peer->network->zcopy -= peer->zcopy_count;
    peer->zcopy_count = 0;
}
