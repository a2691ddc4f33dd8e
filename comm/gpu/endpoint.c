/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.c - can the ranks' devices reach each other, and what they need to do so.
 *
 * All ranks find the same from the same endpoints: everybody has a device, all are on one node, and
 * each device reads and writes the memory of each other one.
 */
#include "comm/gpu/plan.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "collectives/levels/grouping.h"
#include "cuda/module.h"
#include "transport/memory/heap.h"
#include "transport/memory/process.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char nobody[DEVICE_UUID];

/* The devices of this process that the rank's own one reaches, itself among them. */
static rondo_result list_seen(const struct cuda_device *device, struct device_endpoint *endpoint)
{
    const struct cuda_driver *cuda = device->driver;
    rondo_result result;
    int count = 0;
    int seen = 0;

    result = cuda_result(cuda->cuDeviceGetCount(&count), "cuDeviceGetCount");
    for (int i = 0; i < count && seen < DEVICES_SEEN && !result; i++) {
        CUdevice other;
        CUuuid uuid;
        int reaches = 0;

        result = cuda_result(cuda->cuDeviceGet(&other, i), "cuDeviceGet");
        if (!result && other == device->handle)
            reaches = 1;
        else if (!result)
            result = cuda_result(cuda->cuDeviceCanAccessPeer(&reaches, device->handle, other),
                                 "cuDeviceCanAccessPeer");
        if (result || !reaches)
            continue;
        result = cuda_result(cuda->cuDeviceGetUuid(&uuid, other), "cuDeviceGetUuid");
        if (result)
            continue;
        gpu_links_note(device, other, &endpoint->links[seen]);
        memcpy(endpoint->seen[seen++], uuid.bytes, DEVICE_UUID);
    }
    return result;
}

rondo_result gpu_make_endpoint(rondo_comm *comm, struct device_endpoint *endpoint)
{
    struct gpu *gpu = comm_gpu(comm);
    rondo_result result = setting_check(SETTING_CUDA);
    void *arena = NULL;

    if (!result)
        result = setting_check(SETTING_CUDA_RESERVE);
    if (gpu)
        memcpy(endpoint->uuid, gpu->device.uuid, DEVICE_UUID);
    if (result || !gpu || strcmp(setting_read_word(SETTING_CUDA), "host") == 0)
        return result;
    if (!cuda_has_kernels()) {
        log_info("this build of Rondo has no kernels for GPUs: build it where nvcc is");
        return RONDO_OK;
    }
    if (cuda_launcher_open(&gpu->device, &gpu->launcher)) { /* it may be another than all others */
        log_info("calls on CUDA device %d go by way of the host: %s", gpu->device.number,
                 fail_sentence());
        return RONDO_OK;
    }
    result = list_seen(&gpu->device, endpoint);
    if (!result)
        result = heap_alloc(gpu_arena_bytes(comm->size), &arena);
    if (result)
        return result;
    gpu->arena = arena;
    endpoint->arena = (uint64_t)((char *)arena - heap_base());
    result = setting_check(SETTING_GPUDIRECT);
    if (!result)
        endpoint->way = (uint8_t)gpu_proxy_find(comm);
    return result;
}

/* Why not all ranks can reach each other's memory, NULL: they can. */
static const char *find_obstacle(const rondo_comm *comm)
{
    if (comm->size > CUDA_SOURCES_MAX)
        return "there are too many ranks";
    for (int rank = 0; rank < comm->size; rank++) {
        const struct device_endpoint *endpoint = &comm->endpoints[rank].device;

        if (!endpoint->arena || memcmp(endpoint->uuid, nobody, DEVICE_UUID) == 0)
            return "a rank has no device, or no kernels for it, or RONDO_CUDA=host";
        if (!comm->processes[rank])
            return "ranks are on several hosts";
        for (int other = 0; other < comm->size; other++)
            if (!device_endpoint_link(endpoint, &comm->endpoints[other].device))
                return "a device does not reach another one's memory";
    }
    return NULL;
}

/* ---- What plans need ------------------------------------------------------------------------- */

static rondo_result pin_arenas(struct gpu_plans *plans)
{
    rondo_comm *comm = plans->comm;
    size_t bytes = gpu_arena_bytes(comm->size);
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++) {
        struct gpu_view *view = &plans->views[rank];
        char *arena = NULL;

        result =
            process_map(comm->processes[rank], comm->endpoints[rank].device.arena, bytes, &arena);
        if (!result)
            result = gpu_pin(plans->gpu->device.driver, &(struct gpu_pages){comm->id, arena, bytes},
                             &view->device);
        if (!result)
            view->arena = (struct gpu_arena *)(void *)arena;
    }
    plans->own = plans->views[comm->rank].arena;
    return result;
}

/* True if another rank of this process has that device, and it is not this rank's device. */
static bool is_peer_device(const struct gpu_plans *plans, const unsigned char *uuid)
{
    bool peer = false;

    for (int rank = 0; rank < plans->comm->size && !peer; rank++)
        peer = process_is_own(plans->comm->processes[rank]) &&
               memcmp(uuid, plans->comm->endpoints[rank].device.uuid, DEVICE_UUID) == 0;
    return peer && memcmp(uuid, plans->gpu->device.uuid, DEVICE_UUID) != 0;
}

/* In one process a device may need to be told that it shall reach another's memory. Only devices of
 * ranks are opened: a context is large. */
static rondo_result enable_peers(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct cuda_device other;
    CUdevice handle;
    CUuuid uuid;
    int count = 0;

    if (cuda->cuDeviceGetCount(&count) || count < 1)
        return RONDO_OK;
    plans->peer_devices = calloc((size_t)count, sizeof(*plans->peer_devices));
    if (!plans->peer_devices)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for plans on the device.");
    for (int i = 0; i < count; i++) {
        if (cuda->cuDeviceGet(&handle, i) || cuda->cuDeviceGetUuid(&uuid, handle) ||
            !is_peer_device(plans, (const unsigned char *)uuid.bytes) ||
            cuda_device_open(i, &other))
            continue;
        cuda->cuCtxEnablePeerAccess(other.context, 0); /* or it is enabled already */
        plans->peer_devices[plans->peer_device_count++] = i;
        cuda_device_close(&other);
    }
    return RONDO_OK;
}

/* For ranks of this process, region 0 is the address space. */
static rondo_result make_tables(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    size_t ranks = (size_t)plans->comm->size;
    size_t bytes = ranks * GPU_REGIONS * sizeof(*plans->table);
    CUdeviceptr pinned;
    rondo_result result =
        cuda_stock_take(&plans->launcher->stock, &plans->launcher->device, CUDA_HOLDING_PINNED,
                        bytes + sizeof(*plans->progress), &pinned);
    void *memory = (void *)(uintptr_t)pinned;

    if (result)
        return result;
    memset(memory, 0, bytes + sizeof(*plans->progress));
    plans->table = memory;
    plans->progress = (struct gpu_progress *)(void *)(plans->table + ranks * GPU_REGIONS);
    result = cuda_result(cuda->cuMemHostGetDevicePointer(&plans->device_table, memory, 0),
                         "cuMemHostGetDevicePointer");
    plans->device_progress = plans->device_table + bytes;
    for (size_t rank = 0; rank < ranks && plans->comm->one_process; rank++)
        plans->table[rank * GPU_REGIONS] =
            (struct cuda_region){.base = 0, .bytes = CUDA_WORD_OFFSET_MASK};
    return result;
}

static rondo_result open_plans(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    rondo_result result = pin_arenas(plans);

    if (!result)
        result = cuda_launcher_open(&plans->gpu->device, &plans->launcher);
    if (!result)
        result = make_tables(plans);
    if (!result)
        result = cuda_result(cuda->cuEventCreate(&plans->forked, CU_EVENT_DISABLE_TIMING),
                             "cuEventCreate");
    if (!result)
        result = cuda_result(cuda->cuStreamCreate(&plans->side, CU_STREAM_NON_BLOCKING),
                             "cuStreamCreate");
    if (!result)
        result = enable_peers(plans);
    if (!result)
        result = gpu_links_weigh(plans);
    if (!result)
        result = gpu_devcomm_show(plans);
    if (!result)
        gpu_reserve_show(plans);
    return result ? result : gpu_watchdog_start(plans);
}

static void free_plans(struct gpu_plans *plans)
{
    lock_done(&plans->lock);
    lock_done(&plans->inflights_lock);
    free(plans->views);
    free(plans->obeyed);
    free(plans->mappings);
    free(plans->inboxes);
    free(plans->peer_devices);
    spares_done(&plans->spares);
    counts_done(&plans->counts);
    grouping_close(plans->groups);
    free(plans);
}

/* NULL: out of memory. */
static struct gpu_plans *make_plans(rondo_comm *comm)
{
    struct gpu_plans *plans = calloc(1, sizeof(*plans));
    size_t ranks = (size_t)comm->size;

    if (!plans)
        return NULL;
    plans->comm = comm;
    plans->rank = comm->rank;
    plans->size = comm->size;
    plans->gpu = comm_gpu(comm);
    plans->graph_blamed = -1;
    plans->last_inflight = &plans->inflights;
    lock_init(&plans->lock, LOCK_GPU_PLANS);
    lock_init(&plans->inflights_lock, LOCK_GPU_INFLIGHT);
    plans->views = calloc(ranks, sizeof(*plans->views));
    plans->obeyed = calloc(ranks, sizeof(*plans->obeyed));
    plans->mappings = calloc(ranks * GPU_REGIONS, sizeof(struct gpu_mapping *));
    plans->inboxes = calloc(ranks, sizeof(*plans->inboxes));
    if (plans->views && plans->obeyed && plans->mappings && plans->inboxes)
        return plans;
    free_plans(plans);
    return NULL;
}

rondo_result gpu_connect(rondo_comm *comm)
{
    struct gpu *gpu = comm_gpu(comm);
    const char *obstacle;
    struct gpu_plans *plans;
    rondo_result result;

    if (!gpu)
        return RONDO_OK;
    gpu_left_reap();
    result = gpu_gate_open(comm);
    if (result)
        return result;
    obstacle = find_obstacle(comm);
    if (obstacle) {
        log_info("calls on CUDA streams go by way of the host%s: %s",
                 gpu->proxy ? ", but for their payload" : "", obstacle);
        return RONDO_OK;
    }
    plans = make_plans(comm);
    if (!plans)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for plans on the device.");
    gpu->plans = plans;
    result = cuda_enter(&gpu->device);
    if (result)
        return result;
    result = open_plans(plans);
    cuda_leave(&gpu->device);
    return result;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* No call of the communicator is on its way any more. */
static void drop_inflights(struct gpu_plans *plans)
{
    if (atomic_load_explicit(&plans->graphs, memory_order_relaxed))
        cuda_count_inflights(-1);
    while (plans->inflights) {
        struct gpu_inflight *inflight = plans->inflights;

        plans->inflights = inflight->next;
        cuda_count_inflights(-1);
        spare_free(inflight);
    }
}

static void give_back(struct gpu_plans *plans, CUdeviceptr memory)
{
    if (plans->launcher)
        cuda_stock_return(&plans->launcher->stock, &plans->launcher->device, memory);
}

static void free_memory(struct gpu_plans *plans)
{
    struct gpu_substitute *pair;

    for (int i = 0; i < 2; i++)
        give_back(plans, plans->substitutes[i].memory);
    while ((pair = plans->pair_substitutes)) {
        plans->pair_substitutes = pair->next;
        give_back(plans, pair->memory);
        free(pair);
    }
    while (plans->outgrown) {
        struct gpu_outgrown *old = plans->outgrown;

        plans->outgrown = old->next;
        give_back(plans, old->memory);
        free(old);
    }
    gpu_reserve_close(plans);
    give_back(plans, cuda_address(plans->table));
}

/* Release what the device may still use and what would wait for it. Where streams have
 * still to come, gpu_leave_alone() is called in its place. */
static void close_device(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;

    drop_inflights(plans);
    gpu_unmap_all(plans);
    gpu_fd_server_close(plans);
    plans_done(&plans->plans, gpu_program_discard);
    gpu_nvls_close(plans);
    gpu_devcomm_close(plans);
    free_memory(plans);
    cuda_launcher_close(plans->launcher);
    if (plans->side)
        cuda->cuStreamDestroy(plans->side);
    for (int rank = 0; rank < plans->comm->size; rank++)
        if (plans->views[rank].arena)
            gpu_unpin(cuda, plans->views[rank].arena, plans->comm->id);
}

bool gpu_plans_close(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda;

    if (!plans)
        return true;
    cuda = plans->gpu->device.driver;
    if (!gpu_watchdog_stop(plans)) {
        gpu_leave_alone(plans);
        return false;
    }
    close_device(plans);
    gpu_timings_close(plans);
    if (plans->forked)
        cuda->cuEventDestroy(plans->forked);
    free_plans(plans);
    gpu_left_reap();
    return true;
}
