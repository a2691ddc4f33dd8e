/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.c - the peers' side of share.c: a thread of a rank maps what the others order it to.
 *
 * Mapping may take as long as a call does: the driver has a lock for it, which a free holds while
 * it waits for what was queued before. So it is not the watchdog that maps: that one has to see
 * meanwhile whether the call will ever end, and let it go.
 *
 * What is replaced in a slot is not used by any call, but stays mapped for a while: to unmap may
 * wait for all work on the device, where a call may wait for a peer that waits for this thread. So
 * it is done when no call of this process is on its way, and none is being queued; with calls in
 * graphs, which the program launches whenever it likes, only when the communicator is closed. Who
 * has put off too much of it says "not now" to an order that would add to it.
 */
#include "comm/failure/error.h"
#include "comm/gpu/arena.h"

#include "base/caller/times.h"
#include "base/fail.h"
#include "base/log.h"
#include "transport/memory/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RETIRED_MOST = 16 };

/* ---- Mappings -------------------------------------------------------------------------------- */

static void unmap(struct gpu_plans *plans, struct gpu_mapping *mapping)
{
    const struct cuda_device *device = &plans->gpu->device;

    if (mapping->pieces)
        cuda_pieces_unmap(device, mapping->base, mapping->piece, mapping->pieces);
    else
        device->driver->cuIpcCloseMemHandle(mapping->base);
    free(mapping);
}

static void unmap_retired(struct gpu_plans *plans)
{
    while (plans->retired) {
        struct gpu_mapping *mapping = plans->retired;

        plans->retired = mapping->next;
        unmap(plans, mapping);
    }
    plans->retired_count = 0;
}

/* Unless a call of this process is on its way: unmapping may wait for it, and it for a peer, and
 * that for this thread. */
static void unmap_unused(struct gpu_plans *plans)
{
    if (!plans->retired || !cuda_idle_begin())
        return;
    log_debug("%d pieces of device memory that peers have replaced are unmapped",
              plans->retired_count);
    unmap_retired(plans);
    cuda_idle_end();
}

void gpu_unmap_all(struct gpu_plans *plans)
{
    unmap_retired(plans);
    for (int i = 0; i < plans->comm->size * GPU_REGIONS; i++)
        if (plans->mappings[i]) {
            unmap(plans, plans->mappings[i]);
            plans->mappings[i] = NULL;
        }
}

rondo_result gpu_map(struct gpu_plans *plans, int rank,
                     const struct gpu_region_handle *region_handle, CUdeviceptr *ret_base)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUipcMemHandle handle;

    if (process_is_own(plans->comm->processes[rank])) {
        *ret_base = region_handle->base;
        return RONDO_OK;
    }
    memcpy(&handle, region_handle->handle, sizeof(handle));
    return cuda_result(
        cuda->cuIpcOpenMemHandle(ret_base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        "cuIpcOpenMemHandle of a peer's memory (do the ranks share a PID and an IPC namespace? "
        "RONDO_CUDA=host goes without)");
}

rondo_result gpu_hand_out(const struct gpu_plans *plans, CUdeviceptr base, size_t bytes,
                          struct gpu_region_handle *ret_region_handle)
{
    CUipcMemHandle handle;
    rondo_result result = cuda_result(plans->gpu->device.driver->cuIpcGetMemHandle(&handle, base),
                                      "cuIpcGetMemHandle");

    ret_region_handle->base = base;
    ret_region_handle->bytes = bytes;
    _Static_assert(sizeof(handle) == sizeof(ret_region_handle->handle), "an IPC handle travels");
    if (!result)
        memcpy(ret_region_handle->handle, &handle, sizeof(handle));
    return result;
}

rondo_result gpu_take_files(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                            int ret_files[GPU_PIECES])
{
    const struct process *process = plans->comm->processes[rank];
    rondo_result result = RONDO_OK;
    int taken = 0;

    while (!plans->asks && taken < order->pieces && !result) {
        result = process_take_file(process, order->piece[taken].file, &ret_files[taken]);
        taken += !result;
    }
    if (!plans->asks && !result)
        return RONDO_OK;
    while (taken > 0)
        close(ret_files[--taken]);
    if (!plans->asks)
        log_info("files of device memory are asked for at a socket: %s", fail_sentence());
    plans->asks = true;
    return gpu_fd_server_take(plans, rank, order, ret_files);
}

/* By files, which this process has for as long as it maps them. */
static rondo_result map_files(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                              CUdeviceptr *ret_base)
{
    struct cuda_piece pieces[GPU_PIECES];
    int files[GPU_PIECES];
    rondo_result result = gpu_take_files(plans, rank, order, files);

    if (result)
        return result;
    for (int i = 0; i < order->pieces; i++)
        pieces[i] = (struct cuda_piece){.bytes = order->piece[i].bytes, .file = files[i]};
    result = cuda_pieces_map(&plans->gpu->device, pieces, order->pieces, ret_base);
    for (int i = 0; i < order->pieces; i++)
        close(files[i]);
    return result;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

/* The slot's mapping is the new one from now on, NULL: there is nothing to unmap. What came after
 * the table was hidden (gpu/leave.c) is hidden too. */
static void replace(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                    struct gpu_mapping *mapping, CUdeviceptr base)
{
    int at = rank * GPU_REGIONS + (int)order->slot;
    struct gpu_mapping *old = plans->mappings[at];

    lock_take(&plans->inflights_lock);
    plans->table[at] = (struct cuda_region){base, plans->hidden ? 0 : order->region_handle.bytes};
    gpu_note_change(plans->own);
    lock_give(&plans->inflights_lock);
    plans->mappings[at] = mapping;
    if (!old)
        return;
    old->next = plans->retired;
    plans->retired = old;
    plans->retired_count++;
}

/* RONDO_OK with an answer, or what breaks the communicator. What cannot be mapped does not: its
 * owner copies it to where peers find it. */
static rondo_result obey(struct gpu_plans *plans, int rank, const struct gpu_order *order,
                         uint32_t *ret_answer)
{
    size_t bytes = (size_t)order->pieces * sizeof(order->piece[0]);
    bool foreign = order->pieces || !process_is_own(plans->comm->processes[rank]);
    struct gpu_mapping *mapping = NULL;
    CUdeviceptr base = 0;
    rondo_result result;

    *ret_answer = GPU_NOT_NOW;
    if (plans->retired_count >= RETIRED_MOST)
        return RONDO_OK;
    if (foreign) {
        mapping = calloc(1, sizeof(*mapping) + bytes);
        if (!mapping)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a peer's memory.");
    }
    result = order->pieces ? map_files(plans, rank, order, &base)
                           : gpu_map(plans, rank, &order->region_handle, &base);
    if (result) {
        free(mapping);
        log_info("memory of rank %d is copied before peers read it: %s", rank, fail_sentence());
        *ret_answer = GPU_CANNOT;
        return RONDO_OK;
    }
    if (foreign) {
        mapping->base = base;
        mapping->pieces = order->pieces;
        memcpy(mapping->piece, order->piece, bytes);
    }
    replace(plans, rank, order, mapping, base);
    *ret_answer = GPU_DONE;
    return RONDO_OK;
}

bool gpu_map_reserve(struct gpu_plans *plans, int rank)
{
    struct gpu_order order = {.slot = GPU_RESERVE,
                              .region_handle = plans->views[rank].arena->reserve};
    uint32_t answer = GPU_CANNOT;
    rondo_result result = RONDO_OK;

    if (order.region_handle.bytes)
        result = obey(plans, rank, &order, &answer);
    if (result)
        log_info("memory of rank %d is not mapped: %s", rank, fail_sentence());
    return !result && answer == GPU_DONE;
}

static uint64_t bytes_of(const struct gpu_order *order)
{
    uint64_t bytes = 0;

    for (int i = 0; i < order->pieces; i++)
        bytes += order->piece[i].bytes;
    return bytes;
}

/* Do what a peer has ordered. Its order is only as true as the peer is: a copy is checked, and then
 * it does not change. */
static rondo_result obey_rank(struct gpu_plans *plans, int rank)
{
    const rondo_comm *comm = plans->comm;
    struct gpu_arena *arena = plans->views[rank].arena;
    uint32_t number = atomic_load_explicit(&arena->ordered, memory_order_acquire);
    struct gpu_order order;
    uint32_t answer;
    rondo_result result;

    if (!number || number == plans->obeyed[rank])
        return RONDO_OK;
    order = arena->order;
    /* Nothing of an order that is being replaced meanwhile. Acquire: after. */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&arena->ordered, memory_order_relaxed) != number)
        return RONDO_OK;
    if (order.slot >= GPU_REGIONS || order.pieces < 0 || order.pieces > GPU_PIECES ||
        (order.pieces && order.region_handle.bytes != bytes_of(&order)))
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d shows device memory in a way that there is not: slot %u, %d "
                          "pieces.",
                          rank, order.slot, order.pieces);
    result = obey(plans, rank, &order, &answer);
    if (result)
        return result;
    plans->obeyed[rank] = number;
    /* Release: the table has it before the owner tells kernels of it. */
    atomic_store_explicit(gpu_answer(arena, comm->size, comm->rank),
                          number << GPU_ANSWER_BITS | answer, memory_order_release);
    return RONDO_OK;
}

static rondo_result map_new(struct gpu_plans *plans)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < plans->comm->size && !result; rank++)
        if (rank != plans->comm->rank)
            result = obey_rank(plans, rank);
    return result;
}

/* ---- The thread ------------------------------------------------------------------------------ */

/*
 * Seconds to sleep: memory that was replaced can be unmapped some time, and nobody rings for that.
 */
static double nap_time(struct gpu_plans *plans)
{
    return plans->retired ? LOOK_CALLS : LOOK_IDLE;
}

static void look(struct gpu_plans *plans)
{
    rondo_result result;

    if (atomic_load_explicit(&plans->comm->broken, memory_order_acquire))
        return;
    unmap_unused(plans); /* first, as an order may need the room */
    result = map_new(plans);
    if (result)
        comm_break(plans->comm, result, plans->comm->rank);
}

static void *run(void *argument)
{
    gpu_look_until_closed(argument, look, nap_time);
    return NULL;
}

rondo_result gpu_map_start(struct gpu_plans *plans)
{
    if (plans->comm->one_process)
        return RONDO_OK;
    errno = pthread_create(&plans->mapper, NULL, run, plans);
    if (errno)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "Cannot start the thread that maps device memory");
    plans->maps = true;
    return RONDO_OK;
}

void gpu_map_stop(struct gpu_plans *plans)
{
    if (plans->maps)
        pthread_join(plans->mapper, NULL);
    plans->maps = false;
}
