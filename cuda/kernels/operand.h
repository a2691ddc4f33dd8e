/* SPDX-License-Identifier: BSD-3-Clause */
/* operand.h - where an operand is: calls.h says how it may be told. */
#ifndef RONDO_CUDA_KERNELS_OPERAND_H
#define RONDO_CUDA_KERNELS_OPERAND_H

#include "cuda/kernels/calls.h"
#include "cuda/kernels/lanes.h"

/* False: what the word says, or the `bytes` from there, are not in the table's segments. */
LANE_FUNCTION bool operand_find(const struct cuda_operand *operand, uint64_t bytes,
                                const struct cuda_segment *segments, uint32_t segment_count,
                                uint64_t *ret_address)
{
    uint64_t word, offset;
    const struct cuda_segment *segment;

    *ret_address = operand->address + operand->offset;
    if (!(operand->flags & CUDA_INDIRECT))
        return true;
    /* Acquire, pairs with the store of whoever says where the memory
     * is: what was written there before is seen by this kernel. */
    word = lane_load_acquire(reinterpret_cast<const uint64_t *>(operand->address));
    if (word >> CUDA_WORD_SEGMENT_SHIFT >= segment_count)
        return false;
    segment = &segments[word >> CUDA_WORD_SEGMENT_SHIFT];
    offset = (word & CUDA_WORD_OFFSET_MASK) + operand->offset; /* our own part is no secret size */
    if (offset < operand->offset || offset > segment->bytes || bytes > segment->bytes - offset)
        return false;
    *ret_address = segment->base + offset;
    return true;
}

#endif
