/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * communicator.c - the life of an ncclComm: who holds it, who may use it, how it ends.
 *
 * The client, every job that makes or uses it and every call hold it; whoever lets it go last frees
 * it. So ncclCommAbort() may come from a watchdog while another thread is inside of a call, and
 * while a thread still waits for ranks to join: the call ends soon and is waited for, the join is
 * left behind and frees what it got.
 */
#include "compat/compat.h"

#include "base/caller/times.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t magic = 0x6f646e6f72636363;

ncclComm_t communicator_new(int size, int rank, int device, const struct wishes *wishes)
{
    ncclComm_t comm = calloc(1, sizeof(*comm));

    if (!comm)
        return NULL;
    comm->magic = magic;
    comm->maker = getpid();
    comm->size = size;
    comm->rank = rank;
    comm->device = device;
    comm->wishes = *wishes;
    atomic_init(&comm->holders, 1);
    atomic_init(&comm->state, ncclInProgress);
    pthread_mutex_init(&comm->lock, NULL);
    compat_error_begin(comm);
    return comm;
}

bool communicator_is_forked(ncclComm_t comm)
{
    return comm->maker != getpid();
}

void communicator_hold(ncclComm_t comm)
{
    /* Relaxed: who holds it already can't lose it meanwhile. */
    atomic_fetch_add_explicit(&comm->holders, 1, memory_order_relaxed);
}

void communicator_drop(ncclComm_t comm)
{
    /* Release what this holder did, acquire what the others did before it is freed. */
    if (!comm || atomic_fetch_sub_explicit(&comm->holders, 1, memory_order_acq_rel) != 1)
        return;
    compat_error_end(comm);
    compat_memory_forget(comm);
    rondo_comm_close(comm->calls);
    rondo_comm_close(comm->control);
    free(comm->operations);
    pthread_mutex_destroy(&comm->lock);
    comm->magic = 0;
    free(comm);
}

void communicator_release(ncclComm_t comm)
{
    /* Acquire and release, as what comes of it is a drop. */
    if (!atomic_exchange_explicit(&comm->released, true, memory_order_acq_rel))
        communicator_drop(comm);
}

static ncclResult_t check_handle(ncclComm_t comm, const char *function)
{
    if (!comm)
        return compat_fail(NULL, ncclInvalidArgument, "%s: the communicator is NULL.", function);
    if (comm->magic != magic)
        return compat_fail(NULL, ncclInvalidArgument,
                           "%s: this is no communicator, or it was destroyed.", function);
    return ncclSuccess;
}

/* Acquire, pairs with the release in finish() of job.c: what the job made is there. */
static ncclResult_t result_of(ncclComm_t comm, int *ret_jobs)
{
    int state = atomic_load_explicit(&comm->state, memory_order_acquire);

    *ret_jobs = state & ~STATE_RESULT;
    return (ncclResult_t)(state & STATE_RESULT);
}

ncclResult_t communicator_state(ncclComm_t comm)
{
    int jobs;
    ncclResult_t result = result_of(comm, &jobs);

    return jobs & STATE_JOBS * IN_BACKGROUND ? ncclInProgress : result;
}

static ncclResult_t check_state(ncclComm_t comm, const char *function, ncclResult_t state)
{
    if (state == ncclInProgress)
        return compat_fail(comm, ncclInvalidArgument,
                           "%s: the communicator is not ready yet; ask ncclCommGetAsyncError() "
                           "until it says ncclSuccess, or end the group that makes it.",
                           function);
    /* An error of one that was made is that of the last communicator which was to come of it. Its
     * own are found by calls; it can still be shrunk. */
    return atomic_load_explicit(&comm->joined, memory_order_acquire) ? ncclSuccess : state;
}

ncclResult_t communicator_check(ncclComm_t comm, const char *function)
{
    ncclResult_t result = check_handle(comm, function);

    return result ? result : check_state(comm, function, communicator_state(comm));
}

ncclResult_t communicator_check_made(ncclComm_t comm, const char *function)
{
    ncclResult_t result = check_handle(comm, function);
    int jobs;

    return result ? result : check_state(comm, function, result_of(comm, &jobs));
}

ncclResult_t communicator_enter(ncclComm_t comm, const char *function)
{
    ncclResult_t result = communicator_check(comm, function);

    if (result)
        return result;
    if (atomic_load_explicit(&comm->revoked, memory_order_acquire))
        return compat_fail(comm, ncclInvalidUsage,
                           "%s: the communicator was revoked; it can only be split, shrunk or "
                           "destroyed.",
                           function);
    if (atomic_load_explicit(&comm->finished, memory_order_acquire))
        return compat_fail(comm, ncclInvalidUsage,
                           "%s: the communicator was finalized; it can only be destroyed.",
                           function);
    communicator_call_begin(comm);
    return ncclSuccess;
}

void communicator_call_begin(ncclComm_t comm)
{
    communicator_hold(comm);
    atomic_fetch_add_explicit(&comm->calling, 1, memory_order_relaxed);
    /* Pairs with the fence in wait_for_calls(): either the call hears that the communicator was
     * aborted, or it is seen and waited for. */
    atomic_thread_fence(memory_order_seq_cst);
}

void communicator_leave(ncclComm_t comm)
{
    /* Release, pairs with the acquire in wait_for_calls(): the buffers are not touched any more. */
    atomic_fetch_sub_explicit(&comm->calling, 1, memory_order_release);
    communicator_drop(comm);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static ncclResult_t ask(ncclComm_t comm, const char *function, const int *value, int *ret_value)
{
    ncclResult_t result = communicator_check(comm, function);

    if (!result && !ret_value)
        result = compat_fail(comm, ncclInvalidArgument, "%s: no place for the answer.", function);
    if (!result)
        *ret_value = *value;
    return result;
}

NCCL_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count)
{
    return ask(comm, "ncclCommCount", &comm->size, count);
}

NCCL_API(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int *rank)
{
    return ask(comm, "ncclCommUserRank", &comm->rank, rank);
}

/* Without CUDA the answer is -1, which the CUDA runtime calls cudaCpuDeviceId. */
NCCL_API(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int *device)
{
    return ask(comm, "ncclCommCuDevice", &comm->device, device);
}

NCCL_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError)
{
    ncclResult_t result = check_handle(comm, "ncclCommGetAsyncError");
    ncclResult_t state;

    if (!result && !asyncError)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommGetAsyncError: no place for the answer.");
    if (result)
        return result;
    state = communicator_state(comm);
    if (!state && !atomic_load_explicit(&comm->revoked, memory_order_acquire) &&
        !atomic_load_explicit(&comm->shrunk, memory_order_acquire)) {
        rondo_result broken = rondo_comm_query(comm->calls);

        if (broken)
            state =
                compat_fail(comm, compat_translate(broken), "%s", rondo_last_error(comm->calls));
    }
    *asyncError = state;
    return ncclSuccess;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void wait_for_calls(ncclComm_t comm)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with that of communicator_call_begin() */
    /* In a forked child nobody ends the calls that its parent's threads were in. */
    while (atomic_load_explicit(&comm->calling, memory_order_acquire) &&
           !communicator_is_forked(comm))
        doze_for(DOZE_OWN);
}

/* Local, as all that was queued is waited for when it is destroyed: peers are not. */
NCCL_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm)
{
    ncclResult_t result = communicator_check(comm, "ncclCommFinalize");

    if (result)
        return result;
    if (atomic_load_explicit(&comm->revoked, memory_order_acquire))
        return compat_fail(comm, ncclInvalidUsage,
                           "ncclCommFinalize: the communicator was revoked; destroy it.");
    atomic_store_explicit(&comm->finished, true, memory_order_release);
    wait_for_calls(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    result = check_handle(comm, "ncclCommDestroy");
    if (result)
        return result;
    if (communicator_state(comm) == ncclInProgress)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommDestroy: the communicator is not ready yet; wait for it, or "
                           "end it by ncclCommAbort().");
    atomic_store_explicit(&comm->finished, true, memory_order_release);
    wait_for_calls(comm);
    compat_jobs_end(comm);
    communicator_release(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommAbort, ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    result = check_handle(comm, "ncclCommAbort");
    if (result)
        return result;
    communicator_hold(comm); /* the thread that makes it may end meanwhile */
    atomic_store_explicit(&comm->aborted, true, memory_order_release);
    /* Pairs with the fence in make() of job.c: either a job that derives is seen here, or it sees
     * that the communicator was aborted. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&comm->joined, memory_order_acquire)) {
        rondo_comm_abort(comm->calls);
        /* Only then, as peers may need it to go on without us. */
        if (atomic_load_explicit(&comm->state, memory_order_acquire) & STATE_JOBS)
            rondo_comm_abort(comm->control);
        wait_for_calls(comm);
    }
    compat_jobs_end(comm);
    communicator_release(comm);
    communicator_drop(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags)
{
    ncclResult_t result = communicator_check(comm, "ncclCommRevoke");

    if (result)
        return result;
    if (revokeFlags != NCCL_REVOKE_DEFAULT)
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommRevoke: the flags are %d; there is only NCCL_REVOKE_DEFAULT.",
                           revokeFlags);
    atomic_store_explicit(&comm->revoked, true, memory_order_release);
    rondo_comm_abort(comm->calls);
    wait_for_calls(comm);
    return ncclSuccess;
}
