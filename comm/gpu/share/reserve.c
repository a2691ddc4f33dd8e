/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reserve.c - device memory of each rank that all peers map before the first call.
 *
 * It shows whether ranks of different processes can map each other's memory at all: CUDA IPC does
 * not work between PID namespaces, between parts of a device (MIG), or where a sandbox forbids it.
 * Substitutes go by such handles, too, so if one rank cannot map one peer's reserve, all ranks give
 * up their plans on the devices together, and calls go by way of the host.
 *
 *     gpu_connect()   allocate the reserve, show it
 *     gpu_settle()    map all others', say how that went, see how it went elsewhere
 *
 * Later it stands in for buffers that peers cannot map, or not soon: a peer's process may hold the
 * lock that mapping takes until a call has ended that waits for this rank (share/share.c).
 */
#include "comm/failure/error.h"
#include "comm/gpu/plan.h"

#include "base/caller/times.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"
#include "comm/failure/health.h"
#include "cuda/module.h"
#include "transport/memory/process.h"

#include <stdlib.h>

enum { LEAST_RESERVE = 64 << 10 };

/* The stages of a rank with the reserves of all. */
enum { REACH_UNKNOWN, REACH_SHOWN, REACH_ALL, REACH_NOT };

/* ---- At the start ---------------------------------------------------------------------------- */

/* Allocate the reserve: as much as there is, if not as much as there should be. */
static rondo_result allocate(struct gpu_plans *plans)
{
    struct cuda_launcher *launcher = plans->launcher;
    size_t bytes = 0;
    rondo_result result = setting_read_size(SETTING_CUDA_RESERVE, &bytes);

    if (result)
        return result;
    do {
        result = cuda_stock_take(&launcher->stock, &launcher->device, CUDA_HOLDING_DEVICE, bytes,
                                 &plans->reserve);
        plans->reserve_bytes = result ? 0 : bytes;
        bytes /= 2;
    } while (result && bytes >= LEAST_RESERVE);
    return result;
}

void gpu_reserve_show(struct gpu_plans *plans)
{
    if (plans->comm->one_process)
        return;
    if (allocate(plans) || !gpu_share_reserve(plans, plans->reserve, plans->reserve_bytes)) {
        log_info("peers have no device memory of this rank to map: %s", fail_sentence());
        plans->own->reserve.bytes = 0;
    }
    atomic_store_explicit(&plans->own->reach, REACH_SHOWN, memory_order_release);
}

/* ---- At the end ------------------------------------------------------------------------------ */

void gpu_reserve_close(struct gpu_plans *plans)
{
    struct cuda_launcher *launcher = plans->launcher;

    if (plans->engines)
        gpu_leave_memory(plans, plans->reserve);
    else if (launcher)
        cuda_stock_return(&launcher->stock, &launcher->device, plans->reserve);
}

CUdeviceptr gpu_reserve_at(const struct gpu_plans *plans, int rank)
{
    return rank == plans->comm->rank ? plans->reserve
                                     : plans->table[rank * GPU_REGIONS + GPU_RESERVE].base;
}

/* ---- When all have got there ----------------------------------------------------------------- */

rondo_result gpu_await_shown(const struct gpu_plans *plans, int rank, const _Atomic uint32_t *word,
                             uint32_t least, uint32_t *ret_value)
{
    rondo_comm *comm = plans->comm;
    rondo_result result = RONDO_OK;

    while ((*ret_value = atomic_load_explicit(word, memory_order_acquire)) < least && !result) {
        result = health_adopt(comm);
        if (!result && !process_alive(comm->processes[rank])) {
            rondo_fail(RONDO_ERROR_PEER,
                       "Rank %d (process %d) has ended while rank %d waited for "
                       "it to open its part of the device.",
                       rank, process_id(comm->processes[rank]), comm->rank);
            result = comm_break(comm, RONDO_ERROR_PEER, rank);
        }
        doze_for(DOZE_PEER);
    }
    return result;
}

/* *ret_failed: a rank that cannot map what another one shows, -1: none. */
static rondo_result await_all(const struct gpu_plans *plans, uint32_t least, int *ret_failed)
{
    rondo_result result = RONDO_OK;

    *ret_failed = -1;
    for (int rank = 0; rank < plans->comm->size && !result; rank++) {
        uint32_t reach = REACH_UNKNOWN;

        result = gpu_await_shown(plans, rank, &plans->views[rank].arena->reach, least, &reach);
        if (reach == REACH_NOT && *ret_failed < 0)
            *ret_failed = rank;
    }
    return result;
}

/* All that peers show; false: some of it cannot be mapped. */
static bool map_all(struct gpu_plans *plans, bool devcomms)
{
    bool all = true;

    for (int rank = 0; rank < plans->comm->size && all; rank++)
        if (rank != plans->comm->rank)
            all = gpu_map_reserve(plans, rank);
    if (!all || !devcomms || !gpu_devcomm_map(plans))
        return all;
    log_info("inboxes of peers are not mapped: %s", fail_sentence());
    return false;
}

/* The bytes that fit into the shortest reserve, with what is lost to alignment there. */
static size_t find_common(const struct gpu_plans *plans)
{
    const size_t grain = 1024;
    size_t least = SIZE_MAX;

    for (int rank = 0; rank < plans->comm->size; rank++) {
        size_t bytes = plans->views[rank].arena->reserve.bytes;

        least = bytes < least ? bytes : least;
    }
    return least > grain ? (least - grain) / grain * grain : 0;
}

/* Ranks of different processes: *ret_failed as above, the same on every rank. */
static rondo_result meet(struct gpu_plans *plans, bool devcomms, int *ret_failed)
{
    rondo_result result = await_all(plans, REACH_SHOWN, ret_failed);

    if (result)
        return result;
    plans->piece_bytes = find_common(plans);
    atomic_store_explicit(&plans->own->reach, map_all(plans, devcomms) ? REACH_ALL : REACH_NOT,
                          memory_order_release);
    return await_all(plans, REACH_ALL, ret_failed);
}

/* Decides whether copy engines move data; all ranks decide alike. */
static void find_engines(struct gpu_plans *plans)
{
    if (!plans->comm->settings.copy_engines || plans->comm->size == 1)
        return;
    plans->engines = plans->piece_bytes > 0;
    log_info(plans->engines ? "calls that only move data use copy engines, out of the reserves"
                            : "calls that only move data use kernels: copy engines are for ranks "
                              "that are processes, with reserves");
}

static rondo_result settle(struct gpu_plans *plans, bool devcomms)
{
    struct gpu *gpu = plans->gpu;
    rondo_result result = RONDO_OK;
    int failed = -1;

    if (!plans->comm->one_process)
        result = meet(plans, devcomms, &failed);
    else if (devcomms)
        result = gpu_devcomm_map(plans);
    if (!result && failed < 0) {
        find_engines(plans);
        return devcomms ? gpu_devcomm_connect(plans) : RONDO_OK;
    }
    if (result)
        return result;
    log_info("calls on CUDA streams go by way of the host: rank %d cannot map the device memory of "
             "another rank (no PID namespace in common, MIG?)",
             failed);
    gpu->plans = NULL;
    (void)gpu_plans_close(plans);
    return RONDO_OK;
}

rondo_result gpu_settle(rondo_comm *comm)
{
    struct gpu_plans *plans = comm_gpu(comm) ? comm_gpu(comm)->plans : NULL;
    bool devcomms = false;
    rondo_result result;

    if (!plans)
        return RONDO_OK;
    result = gpu_devcomms_await(plans, &devcomms);
    if (!result)
        result = cuda_enter(&plans->gpu->device);
    if (result)
        return result;
    result = settle(plans, devcomms);
    if (!result && comm_gpu(comm)->plans)
        result = gpu_nvls_open(plans);
    cuda_leave(&comm_gpu(comm)->device);
    return result;
}
