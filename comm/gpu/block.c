/* SPDX-License-Identifier: BSD-3-Clause */
/* block.c - pinned memory, kept for the next call that needs as much: pinning is slow. */
#include "comm/gpu/inside.h"

#include "base/caller/times.h"
#include "base/fail.h"

#include <stdlib.h>

enum { LEAST = 64 << 10, WASTE = 4 };

/* Acquire: the stream's last reads and writes of the block come before. */
static bool is_used(const struct gpu_block *block)
{
    return block->state != BLOCK_FREE &&
           !atomic_load_explicit(&block->flags->free.value, memory_order_acquire);
}

static size_t round_up(size_t bytes)
{
    size_t rounded = LEAST;

    while (rounded < bytes)
        rounded *= 2;
    return rounded;
}

static rondo_result make(struct gpu *gpu, size_t bytes, struct gpu_block **ret_block)
{
    const struct cuda_driver *cuda = gpu->device.driver;
    struct gpu_block *block = calloc(1, sizeof(*block));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    void *memory = NULL;
    rondo_result result;

    if (!block)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call on a CUDA stream.");
    block->bytes = round_up(bytes);
    result = rondo_mem_alloc(sizeof(*block->flags) + block->bytes, &memory);
    if (!result) {
        /* Another stream of this thread may be capturing, which forbids most calls. */
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
        result = cuda_result(
            cuda->cuMemHostRegister(memory, sizeof(*block->flags) + block->bytes,
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
            "cuMemHostRegister");
        if (!result)
            result = cuda_result(cuda->cuMemHostGetDevicePointer(&block->device_flags, memory, 0),
                                 "cuMemHostGetDevicePointer");
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (result) {
        rondo_mem_free(memory);
        free(block);
        return result;
    }
    block->flags = memory;
    block->payload = (char *)(block->flags + 1);
    *ret_block = block;
    return RONDO_OK;
}

/* Before anybody else can see it, or with the lock held. */
static void take(struct gpu_block *block)
{
    block->state = BLOCK_TAKEN;
    atomic_store_explicit(&block->flags->ready.value, 0, memory_order_relaxed);
    atomic_store_explicit(&block->flags->done.value, 0, memory_order_relaxed);
    atomic_store_explicit(&block->flags->free.value, 0, memory_order_release);
}

static struct gpu_block *take_spare(struct gpu *gpu, size_t bytes)
{
    struct gpu_block *block;

    lock_take(&gpu->lock);
    for (block = gpu->blocks; block; block = block->next)
        if (block->bytes >= bytes && block->bytes / WASTE <= round_up(bytes) &&
            block->state <= BLOCK_TAKEN && !is_used(block))
            break;
    if (block)
        take(block);
    lock_give(&gpu->lock);
    return block;
}

/* A new one is made without the lock, which streams take: the driver may wait for them. */
rondo_result gpu_block_take(struct gpu *gpu, size_t bytes, struct gpu_block **ret_block)
{
    struct gpu_block *block = NULL;
    rondo_result result;

    *ret_block = take_spare(gpu, bytes);
    if (*ret_block)
        return RONDO_OK;
    result = make(gpu, bytes, &block);
    if (result)
        return result;
    take(block);
    lock_take(&gpu->lock);
    block->next = gpu->blocks;
    gpu->blocks = block;
    lock_give(&gpu->lock);
    *ret_block = block;
    return RONDO_OK;
}

void gpu_block_return(struct gpu *gpu, struct gpu_block *block)
{
    lock_take(&gpu->lock);
    block->state = BLOCK_FREE;
    lock_give(&gpu->lock);
}

void gpu_block_keep(struct gpu *gpu, struct gpu_block *block)
{
    lock_take(&gpu->lock);
    block->state = BLOCK_KEPT;
    /* Until the first launch nobody uses it. */
    atomic_store_explicit(&block->flags->free.value, 1, memory_order_release);
    lock_give(&gpu->lock);
}

void gpu_block_lose(struct gpu *gpu, struct gpu_block *block)
{
    lock_take(&gpu->lock);
    block->state = BLOCK_LOST;
    lock_give(&gpu->lock);
}

bool gpu_stages(rondo_comm *comm, const void *memory)
{
    struct gpu *gpu = comm_gpu(comm);
    const char *at = memory;
    bool found = false;

    lock_take(&gpu->lock);
    for (const struct gpu_block *block = gpu->blocks; block && !found; block = block->next)
        found = at >= block->payload && at < block->payload + block->bytes;
    lock_give(&gpu->lock);
    return found;
}

bool gpu_blocks_are_used(struct gpu *gpu)
{
    bool used = false;

    lock_take(&gpu->lock);
    for (const struct gpu_block *block = gpu->blocks; block && !used; block = block->next)
        used = is_used(block);
    lock_give(&gpu->lock);
    return used;
}

void gpu_blocks_close(struct gpu *gpu, bool lost)
{
    struct gpu_block *next;

    for (struct gpu_block *block = gpu->blocks; block; block = next) {
        next = block->next;
        while (is_used(block) && !lost && block->state != BLOCK_LOST)
            doze_for(DOZE_OWN);
        /* Giving it back waits for the device, where other ranks may wait for what we do next. */
        if (!is_used(block) && !lost && block->state != BLOCK_LOST) {
            gpu->device.driver->cuMemHostUnregister(block->flags);
            rondo_mem_free(block->flags);
        }
        free(block);
    }
    gpu->blocks = NULL;
}
