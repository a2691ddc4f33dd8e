/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocate.c - cuMemAlloc and its kin: on a device, managed, on the host, registered.
 *
 * Freeing waits until the context has nothing to do, as the real driver does: who frees while a
 * kernel spins on something that comes later, hangs here too. Unless CUDA_STANDIN_FREE_LOCKS=0,
 * nobody else in the process can make or map memory of the device meanwhile. Pinning waits until no
 * host function is under way, which a real driver may do.
 *
 * Memory of a device comes as others have left it: the beginning of an allocation has no zeros.
 */
#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { USED_BYTES = 256 << 10 }; /* the rest costs time, and has zeros */

static char *map_anonymous(size_t length)
{
    char *base = mmap(NULL, length + memory_pages(1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* Writes what others have left to the memory of a device, through its file: it may be closed. */
static bool use_memory(int file, size_t size)
{
    static char left[USED_BYTES];
    memset(left, 0xa5, sizeof left);
    size = size < sizeof left ? size : sizeof left;
    return pwrite(file, left, size, 0) == (ssize_t)size;
}

/* New memory, in the table; NULL when there is not enough. Under the lock. */
static struct memory *allocate(CUcontext context, enum memory_kind kind, size_t size)
{
    bool counts = kind != MEMORY_HOST;
    if (size > PTRDIFF_MAX / 2 || (counts && !memory_take(context->device, size)))
        return NULL;
    struct memory *memory = calloc(1, sizeof *memory);
    if (memory) {
        *memory = (struct memory){.kind = kind, .size = size, .context = context, .fd = -1};
        memory->length = memory_pages(size);
        memory->device = context->device;
        memory->id = call_unique();
        if (kind == MEMORY_DEVICE) {
            memory->fd = memory_file(context->device, memory->id, memory->length);
            if (memory->fd >= 0 && use_memory(memory->fd, size))
                memory->base = memory_map_file(memory->fd, memory->length);
        } else {
            memory->base = map_anonymous(memory->length);
        }
    }
    if (memory && memory->base) {
        memory_add(memory);
        return memory;
    }
    if (memory)
        memory->length = 0; /* there is nothing to unmap */
    if (memory)
        memory_remove(memory);
    else if (counts)
        memory_give_back(context->device, size);
    return NULL;
}

static CUresult enter_allocate(const char *function, enum memory_kind kind, size_t size,
                               struct memory *ret_memory)
{
    CUcontext context = NULL;
    CUresult result = context_enter(function, &context);
    if (result)
        return result;
    if (!size)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == MEMORY_HOST)
        stream_await_host_functions();
    call_lock_memory(context->device);
    call_lock();
    result = capture_forbid();
    const struct memory *memory = result ? NULL : allocate(context, kind, size);
    if (memory)
        *ret_memory = *memory;
    call_unlock();
    call_unlock_memory(context->device);
    return result || memory ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
    if (!address)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory memory;
    CUresult result = enter_allocate(__func__, MEMORY_DEVICE, size, &memory);
    if (!result)
        *address = memory_address(&memory);
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags)
{
    if (!address || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    struct memory memory;
    CUresult result = enter_allocate(__func__, MEMORY_MANAGED, size, &memory);
    if (!result)
        *address = memory_address(&memory);
    return result;
}

static CUresult host_alloc(const char *function, void **ret_bytes, size_t size, unsigned flags)
{
    unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!ret_bytes || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory memory;
    CUresult result = enter_allocate(function, MEMORY_HOST, size, &memory);
    if (!result)
        *ret_bytes = memory.base;
    return result;
}

CUresult cuMemHostAlloc(void **bytes, size_t size, unsigned flags)
{
    return host_alloc(__func__, bytes, size, flags);
}

CUresult cuMemAllocHost(void **bytes, size_t size)
{
    return host_alloc(__func__, bytes, size, 0);
}

/* Frees what begins at `address` and is of one of the kinds in `kinds` (a bit for each). */
static CUresult enter_free(const char *function, CUdeviceptr address, unsigned kinds)
{
    CUcontext context = NULL;
    CUresult result = context_enter(function, &context);
    if (result)
        return result;
    call_lock_memory(context->device);
    call_lock();
    struct memory *memory = memory_holding(address, 1);
    if (!memory || memory_address(memory) != address || !(kinds & 1u << memory->kind))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = capture_forbid();
    if (!result) {
        queue_drain_context(memory->context);
        memory = memory_holding(address, 1); /* another thread may have had the lock meanwhile */
        if (memory)
            memory_remove(memory);
        else
            result = CUDA_ERROR_INVALID_VALUE;
    }
    call_unlock();
    call_unlock_memory(context->device);
    return result;
}

CUresult cuMemFree(CUdeviceptr address)
{
    if (!address)
        return CUDA_SUCCESS;
    return enter_free(__func__, address, 1u << MEMORY_DEVICE | 1u << MEMORY_MANAGED);
}

/* There at once, so also when the stream comes to it. */
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream handle)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    struct memory *memory = NULL;
    if (!address || !size)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = capture_forbid_stream(stream); /* no allocations as nodes of a graph */
    if (!result && !(memory = allocate(stream->context, MEMORY_DEVICE, size)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!result)
        *address = memory_address(memory);
    call_unlock();
    return result;
}

struct freeing {
    struct op op;
    struct memory *memory;
};

static void run_freeing(struct op *op)
{
    call_lock();
    memory_remove(((struct freeing *)op)->memory);
    call_unlock();
}

static const struct op_kind freeing_kind = {CU_GRAPH_NODE_TYPE_MEM_FREE, run_freeing, NULL, NULL,
                                            NULL};

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    struct memory *memory = memory_holding(address, 1);
    if (!memory || memory->kind != MEMORY_DEVICE || memory_address(memory) != address)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = capture_forbid_stream(stream);
    struct freeing *freeing = result ? NULL : op_new(sizeof *freeing, &freeing_kind);
    if (!freeing) {
        call_unlock();
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    freeing->memory = memory;
    result = stream_put(stream, &freeing->op);
    if (!result)
        memory_hide(memory);
    call_unlock();
    if (result)
        op_release(&freeing->op);
    return result;
}

CUresult cuMemFreeHost(void *bytes)
{
    return enter_free(__func__, (CUdeviceptr)(uintptr_t)bytes, 1u << MEMORY_HOST);
}

CUresult cuMemHostRegister(void *bytes, size_t size, unsigned flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    unsigned known =
        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    if (!bytes || !size || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *memory = (struct memory){.kind = MEMORY_REGISTERED, .base = bytes, .size = size, .fd = -1};
    memory->context = context;
    memory->device = context->device;
    memory->flags = flags;
    stream_await_host_functions();
    call_lock_memory(context->device);
    call_lock();
    result = capture_forbid();
    if (!result && (memory_find(bytes) || memory_find((char *)bytes + size - 1)))
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!result)
        memory_add(memory);
    call_unlock();
    call_unlock_memory(context->device);
    if (result)
        free(memory);
    return result;
}

CUresult cuMemHostUnregister(void *bytes)
{
    CUresult result = enter_free(__func__, (CUdeviceptr)(uintptr_t)bytes, 1u << MEMORY_REGISTERED);
    return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *bytes, unsigned flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!address || flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_find(bytes);
    bool mapped = memory && (memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED);
    call_unlock();
    if (!mapped)
        return CUDA_ERROR_INVALID_VALUE;
    *address = (CUdeviceptr)(uintptr_t)bytes;
    return CUDA_SUCCESS;
}
