/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copies.cu - many copies at once: block b works on item b % count, with all blocks that have the
 * same. There are at least as many blocks as items.
 */
#include "cuda/kernels/copy.h"
#include "cuda/kernels/operand.h"

/* Finds where the block's item comes from and goes to; false: it lies outside. */
LANE_FUNCTION bool find_item(const struct cuda_copies_argument &argument, uint32_t index,
                             uint64_t *shared_operands)
{
    const struct cuda_copies_item &item = argument.items[index];
    const struct cuda_region *regions =
        reinterpret_cast<const struct cuda_region *>(argument.regions);

    for (uint32_t i = threadIdx.x; i < 2; i += blockDim.x) {
        shared_operands[i] = operand_find(i ? &item.to : &item.from, item.bytes, regions,
                                          argument.region_count);
        if (!shared_operands[i] && argument.error)
            lane_store_release(reinterpret_cast<uint32_t *>(argument.error),
                               CUDA_CALL_BAD_OPERAND + 2 * index + i);
    }
    __syncthreads();
    return shared_operands[0] && shared_operands[1];
}

CUDA_KERNEL(rondo_copies, struct cuda_copies_argument, argument)
{
    __shared__ uint64_t operands[2];
    uint32_t index = blockIdx.x % argument.count, turn = blockIdx.x / argument.count;
    uint64_t blocks =
        gridDim.x / argument.count + (index < gridDim.x % argument.count ? 1u : 0u);
    struct work work = {operands, 1, 1, {}};

    if (find_item(argument, index, operands))
        copy_all(work, argument.items[index].bytes, (uint64_t)turn * blockDim.x + threadIdx.x,
                 blocks * blockDim.x);
}
