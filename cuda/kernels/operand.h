/* SPDX-License-Identifier: BSD-3-Clause */
/* operand.h - where an operand is: calls.h says how it may be told. */
#ifndef RONDO_CUDA_KERNELS_OPERAND_H
#define RONDO_CUDA_KERNELS_OPERAND_H

#include "cuda/kernels/calls.h"
#include "cuda/kernels/lanes.h"

/* The memory `offset` bytes behind what a word says; 0: that, or
 * the `bytes` from there, are not in the table's regions. */
LANE_FUNCTION uint64_t operand_resolve(uint64_t word, uint64_t offset, uint64_t bytes,
                                       const struct cuda_region *regions, uint32_t count)
{
    uint64_t index = word >> CUDA_WORD_REGION_SHIFT;
    uint64_t at = (word & CUDA_WORD_OFFSET_MASK) + offset;

    if (index >= count || at < offset || at > regions[index].bytes ||
        bytes > regions[index].bytes - at)
        return 0;
    return regions[index].base + at;
}

/* 0: it lies outside, or was taken back. */
LANE_FUNCTION uint64_t operand_find(const struct cuda_operand *operand, uint64_t bytes,
                                    const struct cuda_region *regions, uint32_t count)
{
    uint32_t closed = 0;
    uint64_t word;

    if (!(operand->flags & CUDA_INDIRECT))
        return operand->address + operand->offset;
    /* Both words cross the bus at the same time. Relaxed: all that counts is when this was. */
    if (operand->gate)
        closed =
            lane_load_relaxed(reinterpret_cast<const uint32_t *>(operand->address + operand->gate));
    /* Acquire, pairs with the store of whoever says where the memory
     * is: what was written there before is seen by this kernel. */
    word = lane_load_acquire(reinterpret_cast<const uint64_t *>(operand->address));
    return closed ? 0 : operand_resolve(word, operand->offset, bytes, regions, count);
}

#endif
