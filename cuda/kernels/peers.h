/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers.h - where buffers of peers are, in an executor's block.
 *
 * A peer names its memory by words (calls.h). What they mean is in a table in memory of the host,
 * and so is whether the peer has left for good: each look there takes a microsecond. So a program
 * waits for the words of all peers and then makes one look, at a number that grows whenever
 * something of that changes. The program keeps each region with the number under which it was read,
 * in memory of the device, where later launches find it.
 *
 *     words of all peers | number of changes | region known under it? it is there
 *                                            | or else: left? table; kept for the next launch
 */
#ifndef RONDO_CUDA_KERNELS_PEERS_H
#define RONDO_CUDA_KERNELS_PEERS_H

#include "cuda/kernels/block.h"

/* True if what this program learns of regions may be kept: the first of a launch keeps it. */
LANE_FUNCTION bool peers_are_kept(void)
{
    return block.argument.changes && block.argument.known && block.program == 0;
}

LANE_FUNCTION bool peer_has_left(int peer)
{
    const struct cuda_execute_argument *argument = &block.argument;

    return argument->gates && lane_load_relaxed(reinterpret_cast<const uint32_t *>(
                                  argument->gates + (uint64_t)peer * argument->gate_stride));
}

/* From the table in memory of the host; nothing, if the peer has left. */
LANE_FUNCTION struct cuda_region peer_look_up(int peer, uint64_t index)
{
    const struct cuda_execute_argument *argument = &block.argument;
    const struct cuda_region *regions =
        reinterpret_cast<const struct cuda_region *>(argument->regions);
    struct cuda_region region = {0, 0};

    if (regions && index < argument->regions_each && !peer_has_left(peer))
        region = regions[(size_t)peer * argument->regions_each + index];
    return region;
}

/* The region that a word of the peer names; `changes`: their number, 0: nothing is kept. */
LANE_FUNCTION struct cuda_region peer_region(int peer, uint64_t word, uint32_t changes)
{
    uint64_t index = word >> CUDA_WORD_REGION_SHIFT;
    struct cuda_known_region *known =
        reinterpret_cast<struct cuda_known_region *>(block.argument.known);
    struct cuda_region region;

    if (!changes || index >= block.argument.regions_each)
        return peer_look_up(peer, index);
    known += (size_t)peer * block.argument.regions_each + index;
    if (known->changes == changes)
        return known->region;
    region = peer_look_up(peer, index);
    known->region = region;
    known->changes = changes;
    return region;
}

/* Finds where the `bytes` are that a word of the peer names; 0: it has not shown them. */
LANE_FUNCTION uint64_t peer_find(int peer, uint64_t word, uint64_t bytes, uint32_t changes)
{
    struct cuda_region region = peer_region(peer, word, changes);

    return operand_resolve(word & CUDA_WORD_OFFSET_MASK, 0, bytes, &region, 1);
}

LANE_CALLED void peer_resolve(struct execution *x, int peer, const struct link_addresses *said,
                              uint32_t changes)
{
    const struct cuda_extent *extent =
        reinterpret_cast<const struct cuda_extent *>(block.argument.extents) + peer;
    size_t block_bytes = x->shape.count * x->shape.element;
    uint64_t input = 0, output = 0;

    if (said->input_kind == CUDA_ADDRESS_WORD)
        input = peer_find(peer, said->input, extent->inputs * block_bytes, changes);
    if (said->output_kind == CUDA_ADDRESS_WORD)
        output = peer_find(peer, said->output, extent->outputs * block_bytes, changes);
    x->world->peers[peer].input = reinterpret_cast<char *>(input);
    x->world->peers[peer].output = reinterpret_cast<char *>(output);
    if (block_bytes && ((extent->inputs && !input) || (extent->outputs && !output && x->op &&
                                                       said->output_kind != CUDA_ADDRESS_NONE))) {
        x->unreachable = true;
        x->blamed = peer;
    }
}

/* A message of the peer says where its buffers are. Those of few ranks are looked up together. */
LANE_FUNCTION void peer_note(struct execution *x, int peer, const struct link_addresses *said)
{
    if (!block.argument.changes || peer >= CUDA_PEERS_NEAR) {
        peer_resolve(x, peer, said, 0);
        return;
    }
    block.said[peer] = *said;
    block.heard |= UINT32_C(1) << peer;
}

/* All of them have. Their words came after whatever they changed, so the number counts that. */
LANE_FUNCTION void peers_resolve(struct execution *x)
{
    uint32_t changes = 0;

    if (!block.heard)
        return;
    if (peers_are_kept())
        changes = 1 + lane_load_relaxed(reinterpret_cast<const uint32_t *>(block.argument.changes));
    for (int peer = 0; peer < CUDA_PEERS_NEAR; peer++)
        if (block.heard >> peer & 1)
            peer_resolve(x, peer, &block.said[peer], changes);
    block.heard = 0;
}

#endif
