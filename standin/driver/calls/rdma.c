/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.c - device memory for adapters: a file that stands for it, and what they wrote made visible.
 *
 * The file is the memfd of the allocation: no dmabuf, but who maps it has the same bytes.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/memory.h"

#include <fcntl.h>

/* Shows whole pages only; the real driver asks for no less. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!handle || !size || address != memory_pages(address) || size != memory_pages(size) ||
        type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_holding(address, size);
    result = CUDA_ERROR_NOT_SUPPORTED;
    if (memory && memory->kind == MEMORY_DEVICE && memory_address(memory) == address) {
        int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
        result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
        if (!result)
            *(int *)handle = fd;
    }
    call_unlock();
    return result;
}

/* There is one memory for all here; who forgets to call it finds out by CUDA_STANDIN_FAIL. */
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
        (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
         scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
