/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.cu - kernels that combine k operands into m: one per element kind, in which the operation
 * is looked up as it runs, and for sums of the floats that matter most one that knows it.
 *
 * Grid and block may be of any size; all lanes together walk through the elements.
 */
#include "cuda/kernels/combine.h"
#include "cuda/kernels/copy.h"
#include "cuda/kernels/operand.h"
#include "cuda/kernels/sums.h"

/* The state that all lanes of a block share. */
struct shared {
    uint64_t operands[CUDA_OPERANDS_MAX];
    uint32_t error;
};

/* Find the operands; false: one of them lies outside, and nothing may be touched. */
LANE_FUNCTION bool prepare(const struct cuda_reduce_argument &argument, unsigned element,
                           struct shared *shared, struct work *ret_work)
{
    int operands = argument.sources + argument.destinations;

    if (threadIdx.x == 0)
        shared->error = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < operands; i += (int)blockDim.x) {
        shared->operands[i] =
            operand_find(&argument.operands[i], argument.count * element,
                         reinterpret_cast<const struct cuda_region *>(argument.regions),
                         argument.region_count);
        if (!shared->operands[i])
            shared->error = CUDA_CALL_BAD_OPERAND + (uint32_t)i;
    }
    __syncthreads();
    if (shared->error && threadIdx.x == 0 && argument.error)
        lane_store_release(reinterpret_cast<uint32_t *>(argument.error), shared->error);
    *ret_work = {shared->operands, argument.sources, argument.destinations, argument.arithmetic};
    return !shared->error;
}

LANE_FUNCTION uint64_t own_lane()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

LANE_FUNCTION uint64_t all_lanes()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Copies bytes, which are the elements of this kernel. */
CUDA_KERNEL(rondo_copy, struct cuda_reduce_argument, argument)
{
    __shared__ struct shared shared;
    struct work work;

    if (prepare(argument, 1, &shared, &work))
        copy_all(work, argument.count, own_lane(), all_lanes());
}

template <class Kind> LANE_FUNCTION void reduce(const struct cuda_reduce_argument &argument)
{
    __shared__ struct shared shared;
    struct work work;

    if (prepare(argument, sizeof(typename Kind::bits), &shared, &work))
        combine_all<Kind>(work, argument.count, own_lane(), all_lanes());
}

template <class Kind> LANE_FUNCTION void sum(const struct cuda_reduce_argument &argument)
{
    __shared__ struct shared shared;
    struct work work;

    if (prepare(argument, sizeof(typename Kind::bits), &shared, &work))
        sum_all<Kind>(work, argument.count, own_lane(), all_lanes());
}

#define REDUCE_KERNEL(kind)                                           \
    CUDA_KERNEL(rondo_reduce_##kind, struct cuda_reduce_argument, argument) \
    {                                                                 \
        reduce<kind##_kind>(argument);                                \
    }
#define SUM_KERNEL(kind)                                           \
    CUDA_KERNEL(rondo_sum_##kind, struct cuda_reduce_argument, argument) \
    {                                                              \
        sum<kind##_kind>(argument);                                \
    }

REDUCE_KERNEL(int8)
REDUCE_KERNEL(int16)
REDUCE_KERNEL(int32)
REDUCE_KERNEL(int64)
REDUCE_KERNEL(float16)
REDUCE_KERNEL(bfloat16)
REDUCE_KERNEL(float32)
REDUCE_KERNEL(float64)
REDUCE_KERNEL(e4m3)
REDUCE_KERNEL(e5m2)
SUM_KERNEL(float16)
SUM_KERNEL(bfloat16)
SUM_KERNEL(float32)
