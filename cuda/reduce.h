/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.h - kernels/kernels.h on the device: k sources combined into m destinations, queued on a
 * stream, with the same bits as on the CPU.
 */
#ifndef RONDO_CUDA_REDUCE_H
#define RONDO_CUDA_REDUCE_H

#include "cuda/kernels/calls.h"
#include "cuda/module.h"
#include "kernels/kernels.h"

struct cuda_reduce_call {
    const struct cuda_operand *sources;
    const struct cuda_operand *destinations; /* each may equal a source, no other overlaps */
    int source_count;                        /* 1 .. CUDA_SOURCES_MAX; 1 copies */
    int destination_count;                   /* 1 .. CUDA_DESTINATIONS_MAX */
    size_t count;                            /* elements, may be 0 */
    enum kernel_order order;
    int scaled; /* which source op->scale applies to, -1: none */
    bool finish;
    unsigned blocks; /* the most to use; 0: as many as the device holds */
    unsigned least;  /* to use, where the device holds so many and `blocks` allows it */
    /* For indirect operands: a table in memory of the device, and a 32-bit word that it can reach,
     * for what is wrong with them (0: nobody wants to know). */
    CUdeviceptr regions;
    unsigned region_count;
    CUdeviceptr error;
};

/* True if the operation has a kernel. All but functions of users do. */
bool cuda_reduce_can(const struct kernel_op *op);

/* Queue a reduction. Never waits. The device's context is current. */
rondo_result cuda_reduce(const struct cuda_launcher *launcher, const struct kernel_op *op,
                         const struct cuda_reduce_call *call, CUstream stream);

/* The arithmetic of `op` for a kernel; `scaled` and `finish` as in a call. */
struct cuda_arithmetic cuda_arithmetic_of(const struct kernel_op *op, enum kernel_order order,
                                          int scaled, bool finish);

enum cuda_kind cuda_kind_of(rondo_type type);

static inline struct cuda_operand cuda_operand_at(CUdeviceptr address)
{
    return (struct cuda_operand){.address = address};
}

#endif
