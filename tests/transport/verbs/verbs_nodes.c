/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_nodes.c - see verbs_nodes.h; slots are used as plan/step_loop.h does it. */
#include "tests/transport/verbs/verbs_nodes.h"

#include "transport/memory/heap.h"

#include <string.h>

struct node nodes[NODES];
const struct device_source *nodes_device;
bool nodes_lend;

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
    ((struct node *)(void *)control)->naps++;
    *ret_moved = false;
    return RONDO_OK;
}

static const struct network_ops control_ops = {
    .name = "hand", .progress = nothing_moves, .note = carry, .watch = watch};

/* ---- Their owner ----------------------------------------------------------------------------- */

static void caption(void *context, void *ret_caption)
{
    memcpy(ret_caption, ((struct node *)context)->caption, NETWORK_CAPTION);
}

static void heard(void *context, int peer, const void *bytes)
{
    struct node *node = context;

    node->heard_from += memcmp(bytes, nodes[peer].caption, NETWORK_CAPTION) == 0;
}

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
    struct verbs_card card;
    struct verbs_job job = {.owner = &node->owner,
                            .control = &node->control,
                            .rank = rank,
                            .size = NODES,
                            .lanes = NODE_LANES,
                            .slots = NODE_SLOTS,
                            .slot_bytes = NODE_SLOT_BYTES,
                            .way = nodes_device ? DEVICE_DMABUF : DEVICE_STAGED,
                            .device = nodes_device};
    rondo_result result;

    *node = (struct node){.control = {.ops = &control_ops}, .rank = rank};
    node->owner = (struct network_owner){
        .context = node, .caption = caption, .heard = heard, .failed = failed};
    memset(node->caption, 'a' + rank, NETWORK_CAPTION);
    result = verbs_open(&card, &node->network);
    if (!result)
        result = verbs_start(node->network, &job);
    for (int peer = 0; peer < NODES && !result; peer++)
        if (peer != rank)
            result = verbs_connect_links(node->network, peer, node->out, node->in);
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
            heap_free(nodes[rank].lent);
            nodes[rank].lent = NULL;
        }
}

rondo_result nodes_deliver(void)
{
    for (int rank = 0; rank < NODES; rank++) {
        struct node *node = &nodes[rank];

        for (int i = 0; i < node->note_count; i++)
            verbs_note(node->network, node->notes[i].from, node->notes[i].bytes,
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

size_t node_length(int from, int to, int lane, uint32_t number)
{
    static const size_t lengths[] = {8,     0,     56,    57,     1000, 4096,
                                     32768, 32769, 40001, 149999, 1,    NODE_SLOT_BYTES};

    return lengths[(number + (uint32_t)(from + 2 * to + 5 * lane)) % 12];
}

static unsigned char byte_of(int from, int lane, uint32_t number, size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) + number * 7 + (unsigned)(from + 3 * lane));
}

/* Where the sender writes its message: in the slot, or in memory that it lends. */
static char *place_of(struct node *node, const struct link_out *out, struct link_slot *slot,
                      size_t bytes)
{
    struct connection *connection = out->connection;
    void *memory = node->lent;

    if (bytes <= LINK_INLINE)
        return slot->head.payload;
    if (!nodes_lend || (!memory && heap_alloc(NODE_SLOT_BYTES, &memory)))
        return slot->payload;
    node->lent = memory;
    if (!connection_takes(connection, memory, bytes))
        return slot->payload;
    connection->ops->settle(connection, memory, bytes);
    return memory;
}

bool node_send(int from, int to, int lane)
{
    struct link_out *out = &nodes[from].out[lane * NODES + to];
    struct link_slot *slot = (struct link_slot *)(void *)(out->slots + out->index * out->stride);
    size_t bytes = node_length(from, to, lane, out->sent + 1);
    char *payload;
    uint64_t flag;

    if (out->sent - atomic_load_explicit(&out->credit->consumed, memory_order_acquire) >=
        out->slot_count)
        return false;
    out->sent++;
    payload = place_of(&nodes[from], out, slot, bytes);
    for (size_t i = 0; i < bytes; i++)
        payload[i] = (char)byte_of(from, lane, out->sent, i);
    flag = (uint64_t)(0xabc + out->sent) << 32 | out->sent;
    atomic_store_explicit(&slot->head.flag, flag, memory_order_release);
    connection_push(out->connection, slot, payload, bytes, flag);
    out->index = (out->index + 1) % out->slot_count;
    return true;
}

int node_receive(int to, int from, int lane)
{
    struct link_in *in = &nodes[to].in[lane * NODES + from];
    struct link_slot *slot = (struct link_slot *)(void *)(in->slots + in->index * in->stride);
    uint64_t flag = atomic_load_explicit(&slot->head.flag, memory_order_acquire);
    size_t bytes = node_length(from, to, lane, in->received + 1);
    const char *payload = bytes <= LINK_INLINE ? slot->head.payload : slot->payload;
    bool right;

    if ((uint32_t)flag != in->received + 1)
        return 0;
    in->received++;
    right = flag >> 32 == 0xabc + in->received;
    for (size_t i = 0; i < bytes; i++)
        right &= (unsigned char)payload[i] == byte_of(from, lane, in->received, i);
    in->index = (in->index + 1) % in->slot_count;
    connection_give_back(in->connection, in->received);
    return right ? 1 : -1;
}

/* ---- Messages of a device -------------------------------------------------------------------- */

static void fill(char *bytes, size_t count, int from, int lane, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)byte_of(from, lane, number, i);
}

static uint64_t ring_offset(const char *slots, const struct link_slot *slot)
{
    return (uint64_t)(slot->payload - slots);
}

bool node_has_device(int from, int to, int lane)
{
    struct connection *connection = nodes[from].out[lane * NODES + to].connection;
    struct connection_rings rings = {0};

    return connection->ops->rings(connection, &rings) && rings.out && rings.in;
}

bool node_send_device(int from, int to, int lane)
{
    struct link_out *out = &nodes[from].out[lane * NODES + to];
    struct link_slot *slot = (struct link_slot *)(void *)(out->slots + out->index * out->stride);
    size_t bytes = node_length(from, to, lane, out->sent + 1);
    static char payload[NODE_SLOT_BYTES];
    struct connection_rings rings;
    uint64_t flag;

    if (out->sent - atomic_load_explicit(&out->credit->consumed, memory_order_acquire) >=
            out->slot_count ||
        !out->connection->ops->rings(out->connection, &rings))
        return false;
    out->sent++;
    fill(payload, bytes, from, lane, out->sent);
    flag = (uint64_t)(0xdef + out->sent) << 32 | out->sent;
    if (rings.out) {
        fake_device_source.write(NULL, rings.out + ring_offset(out->slots, slot), payload, bytes);
        out->connection->ops->push_device(out->connection, slot, slot->payload, bytes, flag);
    } else {
        memcpy(slot->payload, payload, bytes);
        connection_push(out->connection, slot, slot->payload, bytes, flag);
    }
    out->index = (out->index + 1) % out->slot_count;
    return true;
}

int node_receive_device(int to, int from, int lane)
{
    struct link_in *in = &nodes[to].in[lane * NODES + from];
    struct link_slot *slot = (struct link_slot *)(void *)(in->slots + in->index * in->stride);
    uint64_t flag = atomic_load_explicit(&slot->head.flag, memory_order_acquire);
    size_t bytes = node_length(from, to, lane, in->received + 1);
    static char payload[NODE_SLOT_BYTES], expected[NODE_SLOT_BYTES];
    struct connection_rings rings;

    if ((uint32_t)flag != in->received + 1)
        return 0;
    in->received++;
    if (!in->connection->ops->rings(in->connection, &rings))
        return -1; /* a message has come, so they are connected */
    if (rings.in)
        fake_device_source.read(NULL, payload, rings.in + ring_offset(in->slots, slot), bytes);
    else
        memcpy(payload, slot->payload, bytes);
    fill(expected, bytes, from, lane, in->received);
    in->index = (in->index + 1) % in->slot_count;
    connection_give_back(in->connection, in->received);
    return flag >> 32 == 0xdef + in->received && !memcmp(payload, expected, bytes) ? 1 : -1;
}
