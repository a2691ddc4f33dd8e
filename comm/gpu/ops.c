/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/gpu/ops.h"

#include <string.h>

void gpu_ops_flush(struct gpu_ops *ops)
{
    if (ops->count && !ops->result)
        ops->result =
            cuda_result(ops->cuda->cuStreamBatchMemOp(ops->stream, ops->count, ops->ops, 0),
                        "cuStreamBatchMemOp");
    ops->count = 0;
}

static CUstreamBatchMemOpParams *next(struct gpu_ops *ops)
{
    CUstreamBatchMemOpParams *op;

    if (ops->count == GPU_OPS)
        gpu_ops_flush(ops);
    op = &ops->ops[ops->count++];
    memset(op, 0, sizeof(*op));
    return op;
}

void gpu_ops_wait(struct gpu_ops *ops, CUdeviceptr at, uint32_t value)
{
    CUstreamBatchMemOpParams *op = next(ops);

    op->waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op->waitValue.address = at;
    op->waitValue.value = value;
    op->waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
}

void gpu_ops_write(struct gpu_ops *ops, CUdeviceptr at, uint32_t value)
{
    CUstreamBatchMemOpParams *op = next(ops);

    op->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op->writeValue.address = at;
    op->writeValue.value = value;
}

void gpu_ops_write_word(struct gpu_ops *ops, CUdeviceptr at, uint64_t value)
{
    CUstreamBatchMemOpParams *op = next(ops);

    op->writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op->writeValue.address = at;
    op->writeValue.value64 = value;
}
