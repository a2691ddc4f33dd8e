/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - the device of a communicator, and blocking calls on its memory. */
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/gpu/arena.h"
#include "comm/gpu/inside.h"

#include "base/lock.h"
#include "rondo/cuda.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/setting.h"
#include "cuda/module.h"
#include "transport/link/device_memory.h"
#include "transport/memory/heap.h"

#include <stdlib.h>

int gpu_current(void)
{
    return cuda_current_number();
}

rondo_result gpu_open(int number, struct gpu **ret_gpu)
{
    struct gpu *gpu;
    rondo_result result;

    *ret_gpu = NULL;
    if (number < 0)
        return RONDO_OK;
    gpu = calloc(1, sizeof(*gpu));
    if (!gpu)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator's device.");
    result = setting_read_size(SETTING_CUDA_PIECE, &gpu->piece);
    if (!result)
        result = cuda_device_open(number, &gpu->device);
    if (result) {
        free(gpu);
        return result;
    }
    lock_init(&gpu->lock, LOCK_GPU_BLOCKS);
    result = rondo_stream_open(&gpu->worker);
    if (!result)
        result = cuda_enter(&gpu->device);
    if (!result) {
        result = cuda_result(gpu->device.driver->cuStreamCreate(&gpu->stream, CU_STREAM_DEFAULT),
                             "cuStreamCreate");
        if (!result)
            result = gpu_sequence_open(&gpu->sequence, gpu->device.driver);
        cuda_leave(&gpu->device);
    }
    if (result) {
        (void)gpu_close(gpu, NULL);
        return result;
    }
    log_info("works on CUDA device %d, %s", number, gpu->device.name);
    *ret_gpu = gpu;
    return RONDO_OK;
}

void gpu_agree(rondo_comm *comm)
{
    if (comm_gpu(comm))
        gpu_proxy_agree(comm);
}

/* True if a stream has still to come to a call, or to the end of a launched graph. */
static bool is_behind(const struct gpu *gpu)
{
    /* Acquire, pairs with the release in by_stream(): the call has its turn. */
    bool behind = atomic_load_explicit(&gpu->behind, memory_order_acquire);

    if (behind || cuda_enter(&gpu->device))
        return behind;
    behind = gpu_sequence_is_launched(&gpu->sequence);
    cuda_leave(&gpu->device);
    return behind;
}

bool gpu_shut(rondo_comm *comm)
{
    struct gpu *gpu = comm_gpu(comm);
    rondo_result why;
    int culprit;

    if (!gpu || gpu->shut)
        return true;
    if (!atomic_load_explicit(&comm->broken, memory_order_acquire))
        return !is_behind(gpu);
    why = status_failure(comm->status_pages[comm->rank], &culprit, gpu->why);
    lock_take(&gpu->lock);
    gpu->shut = why;
    lock_give(&gpu->lock);
    return why; /* or another thread is about to write it there */
}

void gpu_stop(struct gpu *gpu)
{
    if (!gpu)
        return;
    rondo_stream_close(gpu->worker);
    gpu->worker = NULL;
    gpu_proxy_stop(gpu->proxy);
}

/*
 * Devices of peers have the arena's pages pinned, and their streams may wait for a word in it until
 * those ranks have closed the communicator: so the pages stay until then. In other pages, which the
 * same addresses would get, a peer's device would not see what its host stores to let it go.
 */
static void retire_arena(const rondo_comm *comm, struct gpu_arena *arena)
{
    if (arena)
        heap_retire(arena, gpu_arena_bytes(comm->size), comm->lease ? leave_lease(comm) : NULL);
}

/* True if a stream or a graph is behind the broken communicator, and so has something of it: calls,
 * the blocks that these are staged in, the event in graphs. Nobody says when such a graph is
 * launched for the last time. */
static bool is_needed(struct gpu *gpu)
{
    /* Acquire, pairs with the release in by_stream(): it touches nothing of this afterwards. */
    return gpu->shut && (atomic_load_explicit(&gpu->behind, memory_order_acquire) ||
                         atomic_load_explicit(&gpu->sequence.graphs, memory_order_acquire) ||
                         gpu_blocks_are_used(gpu));
}

/* The device's kernels stay as well: to unload them waits for all streams. */
static void let_stay(struct gpu *gpu)
{
    static struct gpu *_Atomic stays;

    gpu->next = atomic_load_explicit(&stays, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&stays, &gpu->next, gpu, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
    log_info("what streams and graphs have of a broken communicator stays where it is");
}

bool gpu_close(struct gpu *gpu, const rondo_comm *comm)
{
    bool broken = comm && atomic_load_explicit(&comm->broken, memory_order_acquire);
    bool stays, left = true;

    if (!gpu)
        return true;
    stays = is_needed(gpu);
    gpu_stop(gpu);
    if (gpu->captured) /* launches of its graphs wait for no peer any more */
        cuda_count_inflights(-1);
    gpu_proxy_close(gpu->proxy);
    if (!cuda_enter(&gpu->device)) {
        left = gpu_plans_close(gpu->plans);
        if (!stays) {
            gpu_blocks_close(gpu, broken);
            gpu_captured_close(gpu);
            gpu_sequence_close(&gpu->sequence);
        }
        if (gpu->stream)
            gpu->device.driver->cuStreamDestroy(gpu->stream);
        cuda_leave(&gpu->device);
    }
    retire_arena(comm, gpu->arena);
    gpu_gate_close(gpu->gate);
    if (stays) {
        let_stay(gpu);
        return left;
    }
    cuda_launcher_close(gpu->launcher);
    cuda_device_close(&gpu->device);
    spares_done(&gpu->spares);
    lock_done(&gpu->lock);
    free(gpu);
    return left;
}

void *gpu_spare_take(struct gpu *gpu, size_t bytes)
{
    void *memory;

    lock_take(&gpu->lock);
    memory = spare_take(&gpu->spares, bytes);
    lock_give(&gpu->lock);
    return memory;
}

void gpu_spare_give(struct gpu *gpu, void *memory)
{
    lock_take(&gpu->lock);
    spare_give(&gpu->spares, memory);
    lock_give(&gpu->lock);
}

static struct lock finding = LOCK_AT(LOCK_GPU_FINDING);
FORK_RENEWS({.lock = &finding});

rondo_result gpu_of(rondo_comm *comm, struct gpu **ret_gpu)
{
    lock_take(&finding);
    *ret_gpu = comm_gpu(comm);
    lock_give(&finding);
    if (*ret_gpu)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INTERNAL, "The communicator of a call has no device.");
}

rondo_result gpu_find(const struct batch *batch, CUstream stream, struct gpu **ret_gpu)
{
    rondo_comm *comm = batch->comm;
    const struct cuda_driver *cuda;
    struct gpu *gpu;
    rondo_result result = cuda_load(&cuda);

    if (result)
        return result;
    lock_take(&finding);
    gpu = comm_gpu(comm);
    if (!gpu)
        result = gpu_open(gpu_whose(cuda, batch, stream), &gpu);
    if (gpu)
        comm_set_gpu(comm, gpu, &gpu_backend);
    *ret_gpu = gpu;
    lock_give(&finding);
    return result;
}

/* ---- Blocking calls -------------------------------------------------------------------------- */

/* One batch, of a communicator with a device; NULL if nothing has to be brought. */
struct visit {
    struct gpu_block *block;
    struct stage *stages; /* [task] */
};

/* The device's context is current. */
static rondo_result bring(const struct gpu *gpu, const struct batch *batch, struct visit *visit,
                          rondo_result (*direction)(const struct gpu *, const struct stage *,
                                                    CUstream))
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < batch->count && !result; i++)
        result = direction(gpu, &visit->stages[i], gpu->stream);
    return result ? result
                  : cuda_result(gpu->device.driver->cuStreamSynchronize(gpu->stream),
                                "cuStreamSynchronize");
}

/* Bring the inputs of a batch where its backend can use them. The device's context is current, as
 * the driver says what memory is only to threads that have one. */
static rondo_result bring_there(struct gpu *gpu, struct batch *batch, struct visit *visit)
{
    size_t bytes = 0;
    rondo_result result = stage_plan(gpu, batch, visit->stages, &bytes);

    if (!result && bytes)
        result = gpu_block_take(gpu, bytes, &visit->block);
    if (result || !bytes)
        return result;
    stage_place(visit->stages, batch->tasks, batch->count, visit->block->payload,
                visit->block->payload);
    return bring(gpu, batch, visit, stage_in);
}

static rondo_result visit_begin(struct batch *batch, struct visit *visit)
{
    struct gpu *gpu = comm_gpu(batch->comm);
    rondo_result result;

    *visit = (struct visit){NULL, NULL};
    if (!gpu)
        return RONDO_OK;
    gpu_ran_on_host(batch);
    visit->stages = calloc((size_t)batch->count, sizeof(*visit->stages));
    if (!visit->stages)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d calls.", batch->count);
    result = cuda_enter(&gpu->device);
    if (result)
        return result;
    result = bring_there(gpu, batch, visit);
    cuda_leave(&gpu->device);
    return result;
}

static rondo_result bring_back(struct batch *batch, struct visit *visit)
{
    struct gpu *gpu = comm_gpu(batch->comm);
    rondo_result result = cuda_enter(&gpu->device);

    if (result)
        return result;
    result = bring(gpu, batch, visit, stage_out);
    cuda_leave(&gpu->device);
    return result;
}

static rondo_result visit_end(struct batch *batch, struct visit *visit, bool ran)
{
    rondo_result result = RONDO_OK;

    if (visit->block && ran)
        result = bring_back(batch, visit);
    if (visit->block)
        gpu_block_return(comm_gpu(batch->comm), visit->block);
    free(visit->stages);
    return result;
}

/* Device memory is brought to the host before the calls run, and back after them. */
static rondo_result run(struct batch *batches, int count)
{
    struct visit *visits;
    rondo_result begun = RONDO_OK;
    rondo_result result;

    visits = calloc((size_t)count, sizeof(*visits));
    if (!visits)
        begun = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d calls.", count);
    for (int i = 0; i < count && !begun; i++)
        begun = visit_begin(&batches[i], &visits[i]);
    /* They have their turns, which must be used up: what did not begin breaks. */
    for (int i = 0; i < count && begun; i++)
        comm_break(batches[i].comm, begun, batches[i].comm->rank);
    result = run_batches(batches, count);
    for (int i = 0; i < count && visits; i++) {
        rondo_result ended = visit_end(&batches[i], &visits[i], !batches[i].result);

        result = result ? result : ended;
    }
    free(visits);
    return begun ? begun : result;
}

const struct backend gpu_backend = {.on_device = true,
                                    .run = run,
                                    .begin = gpu_move_begin,
                                    .advance = gpu_move_advance,
                                    .stages = gpu_stages};

/* ---- Public ---------------------------------------------------------------------------------- */

rondo_result rondo_cuda_check(void)
{
    CANCEL_LATER();
    const struct cuda_driver *driver;

    return cuda_load(&driver);
}

/* The device of the current context, or device 0; current until cuda_leave(). */
static rondo_result enter_current(struct cuda_device *ret_device)
{
    int number = gpu_current();
    rondo_result result = cuda_device_open(number < 0 ? 0 : number, ret_device);

    if (result)
        return result;
    result = cuda_enter(ret_device);
    if (result)
        cuda_device_close(ret_device);
    return result;
}

/* The primary context stays retained: it holds the memory. */
rondo_result rondo_cuda_mem_alloc(size_t bytes, void **ret_memory)
{
    CANCEL_LATER();
    struct cuda_device device;
    CUdeviceptr memory = 0;
    rondo_result result;

    if (!ret_memory)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_cuda_mem_alloc: no place for the address.");
    result = enter_current(&device);
    if (result)
        return result;
    result = cuda_result(device.driver->cuMemAlloc(&memory, bytes ? bytes : 1), "cuMemAlloc");
    cuda_leave(&device);
    if (result) {
        cuda_device_close(&device);
        return result;
    }
    *ret_memory = (void *)(uintptr_t)memory;
    return RONDO_OK;
}

/* The number of the device that the memory is on; also for a thread without a context. */
static rondo_result find_owner(const void *memory, int *ret_number)
{
    struct cuda_device device;
    rondo_result result = enter_current(&device);

    if (result)
        return result;
    result = cuda_result(device.driver->cuPointerGetAttribute(
                             ret_number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, cuda_address(memory)),
                         "cuPointerGetAttribute of memory to be freed");
    cuda_leave(&device);
    cuda_device_close(&device);
    return result;
}

rondo_result rondo_cuda_mem_free(void *memory)
{
    CANCEL_LATER();
    struct cuda_device device;
    int number = 0;
    rondo_result result;

    if (!memory)
        return RONDO_OK;
    result = find_owner(memory, &number);
    if (!result)
        result = cuda_device_open(number, &device);
    if (!result)
        result = cuda_enter(&device);
    if (result)
        return result;
    result = cuda_result(device.driver->cuMemFree(cuda_address(memory)), "cuMemFree");
    cuda_leave(&device);
    cuda_device_close(&device);
    if (!result) /* and once more, for what rondo_cuda_mem_alloc() retained */
        cuda_device_close(&device);
    return result;
}

int rondo_comm_cuda_device(const rondo_comm *comm)
{
    return comm && comm_gpu(comm) ? comm_gpu(comm)->device.number : -1;
}
