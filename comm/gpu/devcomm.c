/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devcomm.c - the state of a rank's short kernels: links and an inbox in memory of its device
 * (cuda/executor.h), which peers map.
 *
 * Kernels that wait for each other must run at the same time. So this is done only where no two
 * ranks of different processes share a device, and where those of one process fit on it together;
 * all ranks find the same, from endpoints and from what they show in their arenas.
 *
 * A call ends on a rank when that rank has what it wants. Peers may not have read yet what it sent
 * them, and will write then into its inbox that they did, or make one more call; so an inbox stays
 * until they have closed the communicator, too.
 */
#include "comm/gpu/plan.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "comm/failure/health.h"
#include "comm/gpu/gpu.h"
#include "cuda/executor.h"
#include "transport/memory/process.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, SLOTS = 4 };

/* The states of a device communicator, as a rank shows them to its peers. */
enum { DEVCOMM_UNKNOWN, DEVCOMM_NONE, DEVCOMM_OPEN };

/* ---- Device communicators -------------------------------------------------------------------- */

/* Ranks with this rank's device; 0: one of another process is among them. */
static unsigned count_share(const rondo_comm *comm)
{
    const unsigned char *own = comm->endpoints[comm->rank].device.uuid;
    unsigned share = 0;

    for (int rank = 0; rank < comm->size; rank++) {
        if (memcmp(comm->endpoints[rank].device.uuid, own, DEVICE_UUID) != 0)
            continue;
        if (!process_is_own(comm->processes[rank]))
            return 0;
        share++;
    }
    return share;
}

/* *ret_shown: false if peers cannot be told of it. */
static rondo_result open_devcomm(struct gpu_plans *plans, unsigned share, bool *ret_shown)
{
    struct gpu_region_handle *region_handle = &plans->own->inbox;
    const struct cuda_devcomm_shape shape = {.rank = plans->comm->rank,
                                             .size = plans->comm->size,
                                             .slots = SLOTS,
                                             .slot_bytes = GPU_SHORT,
                                             .share = share,
                                             .regions_known = GPU_REGIONS};
    size_t bytes = 0;
    rondo_result result = cuda_devcomm_open(plans->launcher, &shape, &plans->devcomm);

    if (result)
        return result;
    region_handle->base = cuda_devcomm_inbox(plans->devcomm, &bytes);
    region_handle->bytes = bytes;
    if (!plans->comm->one_process &&
        gpu_hand_out(plans, region_handle->base, bytes, region_handle)) {
        log_info("there are no kernels for short calls: %s", fail_sentence());
        *ret_shown = false;
    }
    return RONDO_OK;
}

rondo_result gpu_devcomm_show(struct gpu_plans *plans)
{
    unsigned blocks = plans->launcher->kernels[CUDA_KERNEL_execute].blocks;
    unsigned share = plans->comm->size <= MOST_RANKS ? count_share(plans->comm) : 0;
    bool fits = share && blocks / share / PLAN_PROGRAMS_MAX > 0;
    rondo_result result = fits ? open_devcomm(plans, share, &fits) : RONDO_OK;

    if (result)
        return result;
    atomic_store_explicit(&plans->own->devcomm, fits ? DEVCOMM_OPEN : DEVCOMM_NONE,
                          memory_order_release);
    gpu_ring(plans);
    return RONDO_OK;
}

rondo_result gpu_devcomms_await(struct gpu_plans *plans, bool *ret_all)
{
    rondo_result result = RONDO_OK;

    *ret_all = true;
    for (int rank = 0; rank < plans->comm->size && !result; rank++) {
        uint32_t devcomm = DEVCOMM_NONE;

        result = gpu_await_shown(plans, rank, &plans->views[rank].arena->devcomm, DEVCOMM_NONE,
                                 &devcomm);
        *ret_all &= devcomm == DEVCOMM_OPEN;
    }
    return result;
}

rondo_result gpu_devcomm_map(struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++) {
        const struct gpu_region_handle *region_handle = &plans->views[rank].arena->inbox;

        if (region_handle->bytes != plans->own->inbox.bytes)
            return rondo_fail(RONDO_ERROR_PEER,
                              "Rank %d has an inbox of another size than rank %d.", rank,
                              comm->rank);
        result = gpu_map(plans, rank, region_handle, &plans->inboxes[rank]);
    }
    return result;
}

bool gpu_is_shared(const rondo_comm *comm)
{
    for (int a = 0; a < comm->size; a++)
        for (int b = 0; b < a; b++)
            if (memcmp(comm->endpoints[a].device.uuid, comm->endpoints[b].device.uuid,
                       DEVICE_UUID) == 0)
                return true;
    return false;
}

rondo_result gpu_devcomm_connect(struct gpu_plans *plans)
{
    rondo_result result = cuda_devcomm_connect(plans->devcomm, plans->inboxes);

    if (result)
        return result;
    plans->medium_bytes = gpu_is_shared(plans->comm) ? SIZE_MAX : GPU_MEDIUM;
    plans->devcomms_ready = true;
    log_info("short calls on CUDA streams run as one kernel each");
    return RONDO_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Inboxes of ranks that have left a communicator whose ranks are all threads of this process. The
 * last one frees them all. */
struct left_behind {
    struct left_behind *next;
    uint64_t id;
    int count;
    struct cuda_launcher *launchers[MOST_RANKS];
    CUdeviceptr inboxes[MOST_RANKS];
};

static struct left_behind *left_behind;
static struct lock left_behind_lock = LOCK_AT(LOCK_GPU_LEFT_BEHIND);
FORK_RENEWS({.lock = &left_behind_lock});

/* With the lock held; NULL: out of memory. */
static struct left_behind **find_left_behind(uint64_t id)
{
    struct left_behind **at = &left_behind;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    if (!*at && (*at = calloc(1, sizeof(**at))))
        (*at)->id = id;
    return *at ? at : NULL;
}

static void free_left_behind(struct left_behind *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->inboxes[i]) {
            struct cuda_launcher *launcher = all->launchers[i];

            cuda_stock_return(&launcher->stock, &launcher->device, all->inboxes[i]);
            cuda_launcher_close(launcher);
        }
    free(all);
}

static void leave_behind(const struct gpu_plans *plans, CUdeviceptr inbox)
{
    const rondo_comm *comm = plans->comm;
    struct left_behind **at, *last = NULL;

    lock_take(&left_behind_lock);
    at = find_left_behind(comm->id);
    if (at) {
        struct left_behind *all = *at;

        if (inbox)
            all->launchers[all->count] = cuda_launcher_share(plans->launcher);
        all->inboxes[all->count++] = inbox;
        if (all->count == comm->size)
            *at = all->next;
        else
            all = NULL;
        last = all;
    }
    lock_give(&left_behind_lock);
    if (last)
        free_left_behind(last);
}

void gpu_devcomm_close(struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;
    CUdeviceptr inbox = 0;
    size_t bytes;

    if (plans->devcomm)
        inbox = cuda_devcomm_inbox(plans->devcomm, &bytes);
    if (comm->one_process && comm->size <= MOST_RANKS)
        leave_behind(plans, inbox);
    else if (inbox)
        gpu_leave_memory(plans, inbox);
    for (int rank = 0; rank < comm->size; rank++)
        if (plans->inboxes[rank] && !process_is_own(comm->processes[rank]))
            plans->gpu->device.driver->cuIpcCloseMemHandle(plans->inboxes[rank]);
    cuda_devcomm_close(plans->devcomm, true);
}
