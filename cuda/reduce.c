/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.c - from a call to a kernel: which one, and on how many blocks. */
#include "cuda/reduce.h"

#include "base/fail.h"
#include "kernels/table.h"

#include <string.h>

enum {
    /* Bytes that a lane should have to do before a further block is worth its start. */
    LANE_BYTES = 64,
};

static const enum cuda_kind kinds[RONDO_TYPES] = {
    [RONDO_INT8] = CUDA_KIND_INT8,        [RONDO_UINT8] = CUDA_KIND_INT8,
    [RONDO_INT16] = CUDA_KIND_INT16,      [RONDO_UINT16] = CUDA_KIND_INT16,
    [RONDO_INT32] = CUDA_KIND_INT32,      [RONDO_UINT32] = CUDA_KIND_INT32,
    [RONDO_INT64] = CUDA_KIND_INT64,      [RONDO_UINT64] = CUDA_KIND_INT64,
    [RONDO_FLOAT16] = CUDA_KIND_FLOAT16,  [RONDO_BFLOAT16] = CUDA_KIND_BFLOAT16,
    [RONDO_FLOAT32] = CUDA_KIND_FLOAT32,  [RONDO_FLOAT64] = CUDA_KIND_FLOAT64,
    [RONDO_FLOAT8_E4M3] = CUDA_KIND_E4M3, [RONDO_FLOAT8_E5M2] = CUDA_KIND_E5M2,
};

/* Kernels are numbered as kinds are. */
_Static_assert((int)CUDA_KERNEL_reduce_e5m2 - (int)CUDA_KERNEL_reduce_int8 ==
                   (int)CUDA_KIND_E5M2 - (int)CUDA_KIND_INT8,
               "a kernel for each kind");

enum cuda_kind cuda_kind_of(rondo_type type)
{
    return kinds[type];
}

static bool is_signed(rondo_type type)
{
    return type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
}

bool cuda_reduce_can(const struct kernel_op *op)
{
    return op->function != KERNEL_USER && kernel_can(op->type, op->function);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The scale as the bits of the type that accumulates. */
static uint64_t scale_bits(const struct kernel_op *op)
{
    uint64_t bits;

    if (op->type <= RONDO_UINT64)
        return op->scale.natural;
    memcpy(&bits, &op->scale.real, sizeof(bits));
    return op->type == RONDO_FLOAT64 ? bits : float_bits((float)op->scale.real);
}

struct cuda_arithmetic cuda_arithmetic_of(const struct kernel_op *op, enum kernel_order order,
                                          int scaled, bool finish)
{
    return (struct cuda_arithmetic){
        .scale = op->has_scale ? scale_bits(op) : 0,
        .divisor = finish ? op->divisor : 0,
        .scaled = op->has_scale ? scaled : -1,
        .function = (uint8_t)op->function,
        .order = (uint8_t)order,
        .is_signed = is_signed(op->type),
        .restore = op->type > RONDO_UINT64 && kernel_type_bytes[op->type] <= 2
                       ? float_bits(op->restore)
                       : 0,
    };
}

static enum cuda_kernel_id choose(const struct kernel_op *op, const struct cuda_reduce_call *call)
{
    bool scale = call->scaled >= 0 && op->has_scale;
    bool finish = call->finish && op->divisor > 1;

    if (call->source_count == 1 && !scale && !finish)
        return CUDA_KERNEL_copy;
    if (op->function == KERNEL_SUM && op->type == RONDO_FLOAT32)
        return CUDA_KERNEL_sum_float32;
    if (op->function == KERNEL_SUM && op->type == RONDO_FLOAT16)
        return CUDA_KERNEL_sum_float16;
    if (op->function == KERNEL_SUM && op->type == RONDO_BFLOAT16)
        return CUDA_KERNEL_sum_bfloat16;
    return (enum cuda_kernel_id)((int)CUDA_KERNEL_reduce_int8 + (int)kinds[op->type]);
}

static unsigned blocks_for(const struct cuda_kernel *kernel, const struct cuda_reduce_call *call,
                           size_t bytes)
{
    size_t each = (size_t)kernel->lanes * LANE_BYTES;
    size_t wanted = bytes / each + (bytes % each != 0);
    size_t most = call->blocks && call->blocks < kernel->blocks ? call->blocks : kernel->blocks;

    if (wanted < call->least)
        wanted = call->least;
    return (unsigned)(wanted < most ? wanted : most);
}

static rondo_result check(const struct kernel_op *op, const struct cuda_reduce_call *call)
{
    if (!cuda_reduce_can(op))
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "A reduction by a user's function cannot run on a GPU: bring the data to "
                          "the host.");
    if (call->source_count < 1 || call->source_count > CUDA_SOURCES_MAX ||
        call->destination_count < 1 || call->destination_count > CUDA_DESTINATIONS_MAX)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "%d sources and %d destinations are too many for one kernel, which takes "
                          "%d of each.",
                          call->source_count, call->destination_count, CUDA_SOURCES_MAX);
    return RONDO_OK;
}

rondo_result cuda_reduce(const struct cuda_launcher *launcher, const struct kernel_op *op,
                         const struct cuda_reduce_call *call, CUstream stream)
{
    struct cuda_reduce_argument argument;
    enum cuda_kernel_id kernel;
    size_t bytes = call->count * kernel_type_bytes[op->type];
    rondo_result result = check(op, call);

    if (result || !call->count)
        return result;
    kernel = choose(op, call);
    argument.arithmetic = cuda_arithmetic_of(op, call->order, call->scaled, call->finish);
    argument.count = kernel == CUDA_KERNEL_copy ? bytes : call->count;
    argument.regions = call->regions;
    argument.error = call->error;
    argument.region_count = call->region_count;
    argument.sources = (uint16_t)call->source_count;
    argument.destinations = (uint16_t)call->destination_count;
    memcpy(argument.operands, call->sources,
           sizeof(argument.operands[0]) * (size_t)call->source_count);
    memcpy(argument.operands + call->source_count, call->destinations,
           sizeof(argument.operands[0]) * (size_t)call->destination_count);
    return cuda_launch(launcher, kernel, blocks_for(&launcher->kernels[kernel], call, bytes),
                       &argument, stream);
}
