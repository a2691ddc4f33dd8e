/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_nodes.c - see verbs_nodes.h. */
#include "tests/transport/verbs/verbs_nodes.h"

#include "tests/transport/verbs/fake_verbs.h"

#include "base/clock.h"
#include "transport/memory/heap.h"

#include <string.h>

struct node nodes[NODES];
const struct device_source *nodes_device;
bool nodes_zcopy;

/* ---- The network for notes ------------------------------------------------------------------- */

static rondo_result carry(struct network *control, int peer, const void *bytes, size_t count)
{
    struct node *to = &nodes[peer];
    struct node_note *note = &to->notes[to->note_count++];

    note->from = ((struct node *)(void *)control)->rank;
    note->count = count;
    memcpy(note->bytes, bytes, count);
    return RONDO_OK;
}

static rondo_result watch(struct network *control, int peer)
{
    struct node *node = (struct node *)(void *)control;

    control->culprit = peer;
    return node->fate ? rondo_fail(node->fate, "The process of rank %d has ended.", peer)
                      : RONDO_OK;
}

static rondo_result nothing_moves(struct network *control, bool *ret_moved)
{
    struct node *node = (struct node *)(void *)control;

    node->naps++;
    if (node->held && clock_seconds() > node->held)
        fake.moves_when_polled = 1000;
    *ret_moved = false;
    return RONDO_OK;
}

static const struct network_ops control_ops = {
    .name = "hand", .progress = nothing_moves, .note = carry, .watch = watch};

/* ---- Their owner ----------------------------------------------------------------------------- */

static void failed(void *context, int peer, const struct network_failure *failure)
{
    (void)context;
    (void)peer;
    (void)failure;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result open_node(int rank)
{
    struct node *node = &nodes[rank];
    const struct network_wish wish = {.rank = rank, .traffic_class = fake.traffic_class};
    const struct network_job job = {
        .owner = {.page = &traffic_calls[rank].page, .context = node, .failed = failed},
        .control = &node->control,
        .rank = rank,
        .size = NODES,
        .channels = NODE_CHANNELS,
        .slots = NODE_SLOTS,
        .slot_bytes = NODE_SLOT_BYTES,
        .way = nodes_device ? DEVICE_DMABUF : DEVICE_STAGED,
        .device = nodes_device};
    struct verbs_endpoint part = {0};
    rondo_result result;

    *node = (struct node){.control = {.ops = &control_ops}, .rank = rank};
    traffic_begin_call(rank);
    result = verbs_transport.open(&wish, &part, &node->network);
    if (!result)
        result = verbs_transport.start(node->network, &job);
    for (int peer = 0; peer < NODES && !result; peer++) {
        const struct endpoint endpoint = {.rank = peer};
        const struct transport_pair pair = {
            .peer = &endpoint, .page = &traffic_calls[rank].pages[peer], .network = node->network};

        if (peer != rank)
            result = verbs_transport.connect(&pair, node->out, node->in);
    }
    return result;
}

rondo_result nodes_open(void)
{
    rondo_result result = RONDO_OK;

    memset(nodes, 0, sizeof(nodes));
    for (int rank = 0; rank < NODES && !result; rank++)
        result = open_node(rank);
    return result;
}

void nodes_close(void)
{
    for (int rank = 0; rank < NODES; rank++)
        if (nodes[rank].network) {
            nodes[rank].network->ops->close(nodes[rank].network);
            nodes[rank].network = NULL;
            heap_free(nodes[rank].zcopy);
            nodes[rank].zcopy = NULL;
        }
}

rondo_result nodes_deliver(void)
{
    for (int rank = 0; rank < NODES; rank++) {
        struct node *node = &nodes[rank];

        for (int i = 0; i < node->note_count; i++)
            node->network->ops->hear(node->network, node->notes[i].from, node->notes[i].bytes,
                                     node->notes[i].count);
        node->note_count = 0;
    }
    return nodes_progress();
}

rondo_result nodes_progress(void)
{
    rondo_result result = RONDO_OK;
    bool moved = false;

    for (int rank = 0; rank < NODES && !result; rank++)
        if (nodes[rank].network)
            result = nodes[rank].network->ops->progress(nodes[rank].network, &moved);
    return result;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Finds where the sender writes its message: in the slot, or in memory that it sends zero-copy. */
static char *place_of(struct node *node, const struct link_out *out, struct link_slot *slot,
                      size_t bytes)
{
    struct connection *connection = out->connection;
    void *memory = node->zcopy;

    if (bytes <= LINK_INLINE)
        return slot->head.payload;
    if (!nodes_zcopy || (!memory && heap_alloc(NODE_SLOT_BYTES, &memory)))
        return slot->payload;
    node->zcopy = memory;
    if (!connection_takes(connection, memory, bytes))
        return slot->payload;
    connection->ops->reclaim(connection, memory, bytes);
    return memory;
}

bool node_send(int from, int to, int channel)
{
    const struct traffic traffic = {from, to, channel};
    struct link_out *out = &nodes[from].out[channel * NODES + to];
    struct link_slot *slot = traffic_open(out);

    if (slot)
        traffic_push(traffic, out, slot,
                     place_of(&nodes[from], out, slot, traffic_length(traffic, out->sent)));
    return slot;
}

int node_receive(int to, int from, int channel)
{
    return traffic_receive((struct traffic){from, to, channel},
                           &nodes[to].in[channel * NODES + from]);
}

/* ---- Messages of a device -------------------------------------------------------------------- */

static uint64_t ring_offset(const char *slots, const struct link_slot *slot)
{
    return (uint64_t)(slot->payload - slots);
}

bool node_has_device(int from, int to, int channel)
{
    struct connection *connection = nodes[from].out[channel * NODES + to].connection;
    struct connection_rings rings = {0};

    return connection->ops->rings(connection, &rings) && rings.out && rings.in;
}

bool node_send_device(int from, int to, int channel)
{
    const struct traffic traffic = {from, to, channel};
    struct link_out *out = &nodes[from].out[channel * NODES + to];
    static char payload[NODE_SLOT_BYTES];
    struct connection_rings rings;
    struct link_slot *slot;
    size_t bytes;

    if (!out->connection->ops->rings(out->connection, &rings) || !(slot = traffic_open(out)))
        return false;
    if (!rings.out) {
        traffic_push(traffic, out, slot, slot->payload);
        return true;
    }
    bytes = traffic_length(traffic, out->sent);
    traffic_fill(traffic, out->sent, payload, bytes);
    fake_device_source.write(NULL, rings.out + ring_offset(out->slots, slot), payload, bytes);
    out->connection->ops->push_device(out->connection, slot, slot->payload, bytes,
                                      traffic_flag(out->sent));
    return true;
}

int node_receive_device(int to, int from, int channel)
{
    const struct traffic traffic = {from, to, channel};
    struct link_in *in = &nodes[to].in[channel * NODES + from];
    struct link_slot *slot = traffic_take(in);
    static char payload[NODE_SLOT_BYTES];
    struct connection_rings rings;
    bool right;

    if (!slot)
        return 0;
    if (!in->connection->ops->rings(in->connection, &rings))
        return -1; /* a message has come, so they are connected */
    if (rings.in)
        fake_device_source.read(NULL, payload, rings.in + ring_offset(in->slots, slot),
                                traffic_length(traffic, in->received));
    right = traffic_is_right(traffic, in->received, slot, rings.in ? payload : slot->payload);
    connection_give_back(in->connection, in->received);
    return right ? 1 : -1;
}
