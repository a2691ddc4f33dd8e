/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.c - leaving failed calls whose buffers the devices of peers touch, as leave.h does for
 * what the host touches.
 *
 *     to queue a call                       to leave
 *       device_inside = 1                     failed = why, with a sentence; alarms rung
 *       alarm? not queued                     all regions of peers hidden; `left` in all mailboxes
 *       queue                                 no kernel of before runs: device_inside = 0
 *       all calls ended: device_inside = 0    device_inside of every peer = 0? streams are let go
 *
 * Kernels read where memory of peers is from a table, when they begin: while a stream waits none
 * runs, and after the table was hidden those to come touch nothing. So all ranks can be outside
 * while their streams still wait for each other. Only then are they let go, and only when they are
 * at their ends does anybody hear of the error from a stream.
 *
 * Device memory cannot be exchanged as pages of the heap can. But a peer that is stopped, whose
 * device goes on, and who may queue the rest of a call when it does so itself, finds its mailboxes
 * to be of somebody who has left: kernels look there when they begin. Those that had begun before
 * are waited for for a while, and then the sentence says that one may still write.
 */
#include "comm/failure/error.h"
#include "comm/gpu/plan.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"
#include "transport/memory/process.h"

static struct status *own_status(const struct gpu_plans *plans)
{
    return plans->comm->status_pages[plans->comm->rank];
}

/* ---- Queueing -------------------------------------------------------------------------------- */

rondo_result gpu_inside(struct gpu_plans *plans)
{
    rondo_comm *comm = plans->comm;
    rondo_result result = RONDO_OK;

    lock_take(&plans->inflights_lock);
    plans->queueing = true;
    atomic_store_explicit(&own_status(plans)->device_inside, 1, memory_order_relaxed);
    lock_give(&plans->inflights_lock);
    /* Pairs with the fence in hide(): either this rank sees the alarm of one that leaves, or that
     * one sees it inside. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(comm->world.alarm, memory_order_acquire))
        result = health_adopt(comm);
    if (!result)
        result = comm_check(comm);
    if (result)
        gpu_inside_queued(plans);
    return result;
}

void gpu_inside_queued(struct gpu_plans *plans)
{
    lock_take(&plans->inflights_lock);
    plans->queueing = false;
    lock_give(&plans->inflights_lock);
    if (atomic_load_explicit(&plans->comm->broken, memory_order_acquire))
        return; /* the watchdog does what is to be done */
    gpu_outside_if_idle(plans);
}

void gpu_outside_if_idle(struct gpu_plans *plans)
{
    if (atomic_load_explicit(&plans->graphs, memory_order_acquire))
        return;
    lock_take(&plans->inflights_lock);
    /* Release, pairs with the acquire in is_inside(): the touching came before. */
    if (!plans->inflights && !plans->queueing)
        atomic_store_explicit(&own_status(plans)->device_inside, 0, memory_order_release);
    lock_give(&plans->inflights_lock);
}

/* ---- Leaving --------------------------------------------------------------------------------- */

/* Kernels of peers that begin from now on touch nothing of this rank, whatever they were told. */
static void take_back(const struct gpu_plans *plans)
{
    for (int rank = 0; rank < plans->comm->size; rank++)
        for (int channel = 0; channel < GPU_CHANNELS; channel++)
            /* Release, pairs with the acquire in who_left(): who finds it finds the status page
             * that says why. */
            atomic_store_explicit(
                &gpu_mailbox(plans->views[rank].arena, plans->comm->rank, channel)->left, 1,
                memory_order_release);
    for (int rank = 0; rank < plans->comm->size; rank++)
        gpu_note_change(plans->views[rank].arena);
}

/*
 * Words of calls that peers never made, or of earlier ones, point nowhere: a kernel that is let go
 * finds no memory that they may name, and leaves without touching any.
 */
static void hide(struct gpu_plans *plans)
{
    lock_take(&plans->inflights_lock);
    plans->hidden = true;
    for (int i = 0; i < plans->comm->size * GPU_REGIONS; i++)
        __atomic_store_n(&plans->table[i].bytes, 0, __ATOMIC_RELAXED);
    lock_give(&plans->inflights_lock);
    take_back(plans);
    gpu_kernel_hold(plans);
    leave_ring(plans->comm); /* whoever broke it may not have come so far */
    atomic_thread_fence(memory_order_seq_cst);
    plans->left_since = clock_seconds();
}

/* True if all work of this rank that began before the table was hidden has ended, or rests. */
static bool is_quiet(struct gpu_plans *plans, struct gpu_inflight *oldest)
{
    if (atomic_load_explicit(&plans->graphs, memory_order_acquire) &&
        clock_seconds() - plans->left_since < PATIENCE_GRAPHS)
        return false;
    return !gpu_kernel_is_inside(plans) && (!oldest || oldest->kernel || gpu_backing_off(plans));
}

static bool is_inside(const rondo_comm *comm, int rank)
{
    const struct status *status = comm->status_pages[rank];

    return atomic_load_explicit(&status->device_inside, memory_order_acquire) &&
           atomic_load_explicit(&status->id, memory_order_acquire) == comm->id &&
           !atomic_load_explicit(&status->closed, memory_order_acquire) &&
           process_alive(comm->processes[rank]);
}

/* True if all peers have left, or been waited for long enough. */
static bool peers_left(struct gpu_plans *plans, bool exposed)
{
    const rondo_comm *comm = plans->comm;
    int found = -1;

    for (int rank = 0; rank < comm->size && found < 0; rank++)
        if (rank != comm->rank && is_inside(comm, rank))
            found = rank;
    if (found < 0 || !exposed)
        return true;
    if (clock_seconds() - plans->left_since < PATIENCE_DEVICE)
        return false;
    log_warn("rank %d does not answer: if its device works at a kernel that had begun when a call "
             "failed, it may still touch device memory of the call, which should not be used for "
             "anything else before that rank has ended",
             found);
    plans->unanswered = found;
    return true;
}

bool gpu_leave(struct gpu_plans *plans, struct gpu_inflight *oldest)
{
    enum gpu_leaving at = atomic_load_explicit(&plans->leaving, memory_order_relaxed);
    enum gpu_leaving before = at;

    if (at == GPU_STAYS && atomic_load_explicit(&own_status(plans)->failed, memory_order_acquire)) {
        hide(plans);
        at = GPU_HIDDEN;
    }
    if (at == GPU_HIDDEN && is_quiet(plans, oldest)) {
        atomic_store_explicit(&own_status(plans)->device_inside, 0, memory_order_release);
        at = GPU_OUTSIDE;
    }
    if (at == GPU_OUTSIDE && peers_left(plans, oldest != NULL || plans->captures != NULL))
        at = GPU_LEFT;
    if (at != before)
        atomic_store_explicit(&plans->leaving, at, memory_order_release);
    return at == GPU_LEFT;
}
