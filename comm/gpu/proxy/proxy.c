/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy.c - whether the device of a rank can move messages to other nodes, and what it shares with
 * adapters for that.
 *
 * Each rank finds out for itself, before endpoints are exchanged: its adapters are tried with
 * memory of its device (transport/verbs/try.c). Only if all ranks can do so does any, as calls are
 * done in the same way everywhere; which of the ways it is may differ from rank to rank.
 */
#include "comm/gpu/proxy/proxy.h"

#include "comm/gpu/arena.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRAIN = 2 << 20 }; /* bytes: device memory is handed out in pages of that size */

/* ---- What it shares -------------------------------------------------------------------------- */

/* Export the memory as a file that stands for the whole allocation. */
static rondo_result export(const struct gpu_proxy *proxy, struct device_memory *memory)
{
    const struct cuda_driver *cuda = proxy->gpu->device.driver;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    rondo_result result = cuda_result(cuda->cuMemGetAddressRange(&base, &bytes, memory->address),
                                      "cuMemGetAddressRange");

    if (!result)
        result = cuda_result(
            cuda->cuMemGetHandleForAddressRange(&memory->file, base, bytes / GRAIN * GRAIN,
                                                CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
            "cuMemGetHandleForAddressRange");
    memory->offset = memory->address - base;
    return result;
}

static rondo_result take(void *context, size_t bytes, bool file, struct device_memory *ret_memory)
{
    struct gpu_proxy *proxy = context;
    const struct cuda_device *device = &proxy->gpu->device;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct device_memory memory = {.bytes = bytes, .file = -1};
    CUdeviceptr address = 0;
    rondo_result result = cuda_enter(device);

    if (result)
        return result;
    device->driver->cuThreadExchangeStreamCaptureMode(&mode);
    result = cuda_stock_take(&proxy->launcher->stock, device, CUDA_HOLDING_DEVICE,
                             (bytes + GRAIN - 1) / GRAIN * GRAIN, &address);
    memory.address = address;
    if (!result && file)
        result = export(proxy, &memory);
    if (result)
        cuda_stock_return(&proxy->launcher->stock, device, address);
    device->driver->cuThreadExchangeStreamCaptureMode(&mode);
    cuda_leave(device);
    if (!result)
        *ret_memory = memory;
    return result;
}

static void give(void *context, struct device_memory *memory)
{
    struct gpu_proxy *proxy = context;

    if (!memory->address || cuda_enter(&proxy->gpu->device))
        return;
    if (memory->file >= 0)
        close(memory->file);
    cuda_stock_return(&proxy->launcher->stock, &proxy->gpu->device, memory->address);
    cuda_leave(&proxy->gpu->device);
}

/* Bytes between host and device, when what adapters wrote before is to be seen. */
static rondo_result copy(const struct gpu_proxy *proxy, CUdeviceptr to, CUdeviceptr from,
                         size_t bytes)
{
    const struct cuda_driver *cuda = proxy->gpu->device.driver;
    rondo_result result = cuda_enter(&proxy->gpu->device);

    if (result)
        return result;
    if (proxy->flushes)
        result = cuda_result(
            cuda->cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                             CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
            "cuFlushGPUDirectRDMAWrites");
    if (!result)
        result = cuda_result(cuda->cuMemcpyAsync(to, from, bytes, proxy->stream), "cuMemcpyAsync");
    if (!result)
        result = cuda_result(cuda->cuStreamSynchronize(proxy->stream), "cuStreamSynchronize");
    cuda_leave(&proxy->gpu->device);
    return result;
}

static rondo_result read_device(void *context, void *to, uint64_t from, size_t bytes)
{
    return copy(context, cuda_address(to), from, bytes);
}

static rondo_result write_device(void *context, uint64_t to, const void *from, size_t bytes)
{
    return copy(context, to, cuda_address(from), bytes);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Open a stream of the highest priority: it must not wait behind a stream of the user's which waits
 * for it. */
static rondo_result open_stream(struct gpu_proxy *proxy)
{
    const struct cuda_driver *cuda = proxy->gpu->device.driver;
    int least = 0, greatest = 0;
    rondo_result result = cuda_result(cuda->cuCtxGetStreamPriorityRange(&least, &greatest),
                                      "cuCtxGetStreamPriorityRange");

    return result ? result
                  : cuda_result(cuda->cuStreamCreateWithPriority(&proxy->stream,
                                                                 CU_STREAM_NON_BLOCKING, greatest),
                                "cuStreamCreateWithPriority");
}

static rondo_result open_parts(struct gpu_proxy *proxy)
{
    const struct cuda_device *device = &proxy->gpu->device;
    CUdeviceptr pinned = 0;
    rondo_result result = cuda_launcher_open(device, &proxy->launcher);

    if (!result)
        result = open_stream(proxy);
    if (!result)
        result = cuda_stock_take(&proxy->launcher->stock, device, CUDA_HOLDING_PINNED,
                                 sizeof(*proxy->reached), &pinned);
    if (result)
        return result;
    proxy->reached = (_Atomic uint32_t *)(uintptr_t)pinned;
    atomic_store_explicit(proxy->reached, 0, memory_order_relaxed);
    return cuda_result(
        device->driver->cuMemHostGetDevicePointer(&proxy->device_reached, proxy->reached, 0),
        "cuMemHostGetDevicePointer");
}

static rondo_result open_proxy(rondo_comm *comm, struct gpu_proxy **ret_proxy)
{
    size_t links = (size_t)comm->size * PLAN_CHANNELS;
    struct gpu_proxy *proxy = calloc(1, sizeof(*proxy));
    rondo_result result = RONDO_OK;

    if (!proxy)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a device's messages.");
    proxy->comm = comm;
    proxy->gpu = comm_gpu(comm);
    snprintf(proxy->name, sizeof(proxy->name), "CUDA device %d", comm_gpu(comm)->device.number);
    proxy->source = (struct device_source){.context = proxy,
                                           .name = proxy->name,
                                           .take = take,
                                           .give = give,
                                           .read = read_device,
                                           .write = write_device};
    proxy->links = calloc(links, sizeof(*proxy->links));
    proxy->pinned = calloc(2 * links, sizeof(*proxy->pinned));
    if (!proxy->links || !proxy->pinned)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a device's messages.");
    if (!result)
        result = cuda_enter(&comm_gpu(comm)->device);
    if (!result) {
        result = open_parts(proxy);
        cuda_leave(&comm_gpu(comm)->device);
    }
    if (result)
        gpu_proxy_close(proxy);
    else
        *ret_proxy = proxy;
    return result;
}

void gpu_proxy_stop(struct gpu_proxy *proxy)
{
    if (!proxy || cuda_enter(&proxy->gpu->device))
        return;
    while (proxy->pinned_count)
        gpu_unpin(proxy->gpu->device.driver, proxy->pinned[--proxy->pinned_count], proxy->comm->id);
    cuda_leave(&proxy->gpu->device);
}

void gpu_proxy_close(struct gpu_proxy *proxy)
{
    struct cuda_launcher *launcher;

    if (!proxy)
        return;
    launcher = proxy->launcher;
    gpu_proxy_stop(proxy);
    if (!cuda_enter(&proxy->gpu->device)) {
        if (launcher) {
            cuda_stock_return(&launcher->stock, &launcher->device, proxy->scratch);
            cuda_stock_return(&launcher->stock, &launcher->device, cuda_address(proxy->reached));
        }
        if (proxy->stream)
            proxy->gpu->device.driver->cuStreamDestroy(proxy->stream);
        cuda_launcher_close(launcher);
        cuda_leave(&proxy->gpu->device);
    }
    free(proxy->links);
    free(proxy->pinned);
    free(proxy->completions);
    free(proxy);
}

/* ---- Which way ------------------------------------------------------------------------------- */

static int attribute(const struct gpu *gpu, CUdevice_attribute which)
{
    int value = 0;

    return gpu->device.driver->cuDeviceGetAttribute(&value, which, gpu->device.handle) ? 0 : value;
}

/* Why adapters may not use memory of the device, NULL: nothing is known against it. */
static const char *find_obstacle(struct gpu_proxy *proxy)
{
    const struct gpu *gpu = proxy->gpu;

    if (!networks_for_devices(&proxy->comm->networks))
        return "RDMA is not used";
    if (!attribute(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED))
        return "the device does not support it";
    /* What an adapter wrote is seen by kernels that are launched later, or after a flush. */
    proxy->flushes = attribute(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) <
                     CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
    if (proxy->flushes &&
        !(attribute(gpu, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) &
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
        return "what adapters write to the device cannot be flushed into its sight";
    return NULL;
}

static enum device_way find_way(struct gpu_proxy *proxy, const char *wanted)
{
    struct network *network;
    const char *obstacle;

    if (strcmp(wanted, "slots") == 0)
        return DEVICE_SLOTS;
    obstacle = find_obstacle(proxy);
    if (obstacle) {
        log_info("adapters do not use memory of %s: %s", proxy->name, obstacle);
        return DEVICE_STAGED;
    }
    network = networks_for_devices(&proxy->comm->networks);
    return network->ops->try_device(network, &proxy->source, wanted);
}

enum device_way gpu_proxy_find(rondo_comm *comm)
{
    const char *wanted = setting_read_word(SETTING_GPUDIRECT);
    struct gpu_proxy *proxy = NULL;
    enum device_way way;

    if (!networks_is_any(&comm->networks) || strcmp(wanted, "off") == 0)
        return DEVICE_STAGED;
    if (open_proxy(comm, &proxy)) {
        log_info("the device moves no messages between nodes: %s", fail_sentence());
        return DEVICE_STAGED;
    }
    way = find_way(proxy, wanted);
    if (way == DEVICE_STAGED) {
        gpu_proxy_close(proxy);
        return way;
    }
    proxy->way = way;
    comm_gpu(comm)->proxy = proxy;
    return way;
}

/* The first rank whose device does not, -1: all do. */
static int find_unable(const rondo_comm *comm)
{
    for (int rank = 0; rank < comm->size; rank++)
        if (comm->endpoints[rank].device.way == DEVICE_STAGED ||
            comm->endpoints[rank].device.way >= DEVICE_WAYS)
            return rank;
    return -1;
}

static bool is_spread(const rondo_comm *comm)
{
    const struct endpoint *own = &comm->endpoints[comm->rank];

    for (int rank = 0; rank < comm->size; rank++)
        if (memcmp(comm->endpoints[rank].host, own->host, sizeof(own->host)) != 0)
            return true;
    return false;
}

void gpu_proxy_agree(rondo_comm *comm)
{
    static const char *const how[DEVICE_WAYS] = {[DEVICE_SLOTS] = "through slots of the host",
                                                 [DEVICE_DMABUF] = "by dmabuf",
                                                 [DEVICE_PEER] = "by peer memory"};
    struct gpu_proxy *proxy = comm_gpu(comm)->proxy;
    int unable = find_unable(comm);
    bool spread = is_spread(comm);

    if (spread && unable < 0 && comm->size + 2 <= CUDA_SOURCES_MAX) {
        log_info("GPU buffers go to other nodes %s, moved by the device", how[proxy->way]);
        return;
    }
    if (spread && unable >= 0)
        log_info("GPU buffers are staged between nodes: GPUDirect is not used by rank %d", unable);
    else if (spread)
        log_info("GPU buffers are staged between nodes: there are too many ranks for GPUDirect");
    comm_gpu(comm)->proxy = NULL;
    gpu_proxy_close(proxy);
}

const struct device_source *gpu_device_source(const rondo_comm *comm, enum device_way *ret_way)
{
    const struct gpu_proxy *proxy = comm_gpu(comm) ? comm_gpu(comm)->proxy : NULL;

    *ret_way = proxy ? proxy->way : DEVICE_STAGED;
    return *ret_way > DEVICE_SLOTS ? &proxy->source : NULL;
}
