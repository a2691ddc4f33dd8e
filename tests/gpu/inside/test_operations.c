/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_operations.c - how many operations the host queues for a call on a CUDA stream: each costs
 * it some microseconds, and the device, too.
 *
 * The driver's functions that queue something are counted on their way to the driver.
 */
#include "../bodies.h"
#include "../device.h"

#include "cuda/driver.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RANKS = 8, CALLS = 10, MOST = 3 };

static struct cuda_driver real; /* as the library found it */
static atomic_int queued;

static void note(unsigned operations)
{
    atomic_fetch_add_explicit(&queued, (int)operations, memory_order_relaxed);
}

static CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       CUstream stream, void **arguments, void **extra)
{
    note(1);
    return real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                               stream, arguments, extra);
}

static CUresult batch(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations,
                      unsigned flags)
{
    note(count);
    return real.cuStreamBatchMemOp(stream, count, operations, flags);
}

static CUresult record(CUevent event, CUstream stream)
{
    note(1);
    return real.cuEventRecord(event, stream);
}

static CUresult follow(CUstream stream, CUevent event, unsigned flags)
{
    note(1);
    return real.cuStreamWaitEvent(stream, event, flags);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    note(1);
    return real.cuMemcpyAsync(to, from, bytes, stream);
}

static CUresult write_word(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    note(1);
    return real.cuStreamWriteValue32(stream, at, value, flags);
}

static CUresult wait_word(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
    note(1);
    return real.cuStreamWaitValue32(stream, at, value, flags);
}

static CUresult call_host(CUstream stream, CUhostFn function, void *context)
{
    note(1);
    return real.cuLaunchHostFunc(stream, function, context);
}

/* Before there are ranks. The table is the library's own, which nobody else writes. */
static void count_operations(void)
{
    const struct cuda_driver *found;
    struct cuda_driver *driver;

    cr_assert(cuda_load(&found) == RONDO_OK);
    driver = (struct cuda_driver *)(uintptr_t)found;
    real = *driver;
    driver->cuLaunchKernel = launch;
    driver->cuStreamBatchMemOp = batch;
    driver->cuEventRecord = record;
    driver->cuStreamWaitEvent = follow;
    driver->cuMemcpyAsync = copy;
    driver->cuStreamWriteValue32 = write_word;
    driver->cuStreamWaitValue32 = wait_word;
    driver->cuLaunchHostFunc = call_host;
}

static rondo_result call(struct gpu_rank *rank, int32_t *memory, int times)
{
    size_t count = (size_t)rank->scene->cases;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < times && !result; i++)
        result = rondo_all_reduce(memory, memory + count, count, RONDO_INT32, RONDO_SUM, rank->comm,
                                  rank->stream);
    return result ? result : rondo_stream_synchronize(rank->stream);
}

static rondo_result count_calls(struct gpu_rank *rank)
{
    size_t bytes = (size_t)rank->scene->cases * sizeof(int32_t);
    int32_t *memory = device_alloc(MEMORY_DEVICE, 2 * bytes), *host = calloc(2, bytes);
    rondo_result result = memory && host && device_copy(memory, host, 2 * bytes)
                              ? call(rank, memory, 1)
                              : RONDO_ERROR_MEMORY;

    if (!result)
        result = rondo_barrier(rank->comm, NULL);
    if (!result && rondo_comm_rank(rank->comm) == 0)
        atomic_store_explicit(&queued, 0, memory_order_relaxed);
    if (!result)
        result = rondo_barrier(rank->comm, NULL);
    if (!result)
        result = call(rank, memory, CALLS);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, memory);
    free(host);
    return result;
}

static rondo_result body(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, count_calls);
}

/* Operations of a rank in a call. */
static int operations_of(int ranks, int devices, size_t bytes)
{
    static struct world_report report;
    struct gpu_scene scene = {.devices = devices, .cases = (int)(bytes / sizeof(int32_t))};

    cr_assert(world_run_threads(ranks, body, &scene, &report) == 0, "%s", report.summary);
    return (atomic_load_explicit(&queued, memory_order_relaxed) + ranks * CALLS - 1) /
           (ranks * CALLS);
}

static int operations(size_t bytes)
{
    return operations_of(RANKS, RANKS, bytes);
}

TestSuite(gpu_operations, .init = count_operations);

Test(gpu_operations, an_all_reduce_is_one_kernel_and_what_tells_of_its_end)
{
    for (size_t bytes = 1 << 10; bytes <= 4 << 20; bytes *= 16)
        cr_expect(operations(bytes) <= MOST, "%zu bytes: %d operations", bytes, operations(bytes));
    cr_expect(operations(1 << 20) <= MOST, "1 MiB: %d operations", operations(1 << 20));
}

/* Ranks that share a device would have to wait for each other's hosts between operations. */
Test(gpu_operations, so_are_long_ones_of_ranks_that_share_a_device)
{
    int shared = operations_of(2, 1, 16 << 20), apart = operations_of(2, 2, 16 << 20);

    cr_expect(shared <= MOST, "%d operations", shared);
    cr_expect(apart > MOST || device_count() < 2, "%d operations on two devices", apart);
}

/* The way of ranks that cannot spin, which is what this is counted against. */
Test(gpu_operations, step_by_step_it_is_many)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    cr_expect(operations(1 << 20) > 10 * MOST, "%d operations", operations(1 << 20));
}
