/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - memory operations of a stream, collected so that many of them are one call of the
 * driver; what needs them done before calls gpu_ops_flush().
 */
#ifndef RONDO_COMM_GPU_OPS_H
#define RONDO_COMM_GPU_OPS_H

#include "comm/gpu/arena.h"

enum { GPU_OPS = 64 };

struct gpu_ops {
    const struct cuda_driver *cuda;
    CUstream stream;
    rondo_result result; /* sticky: after an error nothing more is queued */
    unsigned count;
    CUstreamBatchMemOpParams ops[GPU_OPS];
};

void gpu_ops_flush(struct gpu_ops *ops);
void gpu_ops_wait(struct gpu_ops *ops, CUdeviceptr at, uint32_t value); /* until it is there */
void gpu_ops_write(struct gpu_ops *ops, CUdeviceptr at, uint32_t value);
void gpu_ops_write_word(struct gpu_ops *ops, CUdeviceptr at, uint64_t value);

#endif
