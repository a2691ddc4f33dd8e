/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - the calls of a thread between ncclGroupStart() and the outermost ncclGroupEnd().
 *
 * Communicators to be made are kept here and made first, each by a thread of its own. Collective
 * calls are Rondo's group, which begins with the first of them. Communicators with calls in the
 * group are held until it has ended, and are in a call only while it ends: who aborts one does not
 * wait for a group that its client has left open.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    int depth;
    ncclResult_t spoiled; /* the first error of a call inside */
    bool calls;           /* Rondo's group is open */
    struct job *jobs;
    int job_count, job_room;
    ncclComm_t *comms;
    int comm_count, comm_room;
} group;

bool compat_in_group(void)
{
    return group.depth > 0;
}

ncclResult_t compat_spoil(ncclResult_t result)
{
    if (group.depth && result && result != ncclInProgress && !group.spoiled)
        group.spoiled = result;
    return result;
}

/* Room for one more in an array that doubles. */
static bool make_room(void **array, size_t element, int count, int *room)
{
    int wanted = *room ? 2 * *room : 8;
    void *moved;

    if (count < *room)
        return true;
    moved = realloc(*array, (size_t)wanted * element);
    if (!moved)
        return false;
    *array = moved;
    *room = wanted;
    return true;
}

static ncclResult_t out_of_memory(void)
{
    return compat_spoil(compat_fail(NULL, ncclSystemError, "Out of memory for a group."));
}

ncclResult_t compat_group_add_job(const struct job *job)
{
    struct job own = *job;

    if (!make_room((void **)&group.jobs, sizeof(*group.jobs), group.job_count, &group.job_room)) {
        compat_job_discard(&own);
        return out_of_memory();
    }
    group.jobs[group.job_count++] = own;
    return ncclSuccess;
}

ncclResult_t compat_group_add_call(ncclComm_t comm)
{
    if (!group.depth)
        return ncclSuccess;
    for (int i = group.comm_count - 1; i >= 0; i--)
        if (group.comms[i] == comm)
            return ncclSuccess;
    if (!make_room((void **)&group.comms, sizeof(ncclComm_t), group.comm_count, &group.comm_room))
        return out_of_memory();
    if (!group.calls)
        rondo_group_start();
    group.calls = true;
    communicator_hold(comm);
    group.comms[group.comm_count++] = comm;
    return ncclSuccess;
}

/* A call that can't be right makes Rondo drop the others of its group. */
static rondo_result drop_calls(void)
{
    rondo_collective_call(NULL);
    return rondo_group_end();
}

static ncclResult_t run_calls(void)
{
    ncclComm_t finished = NULL;
    ncclResult_t result;

    for (int i = 0; i < group.comm_count; i++) {
        communicator_call_begin(group.comms[i]);
        if (atomic_load_explicit(&group.comms[i]->finished, memory_order_acquire))
            finished = group.comms[i];
    }
    if (finished)
        drop_calls();
    result = finished ? compat_fail(finished, ncclInvalidUsage,
                                    "ncclGroupEnd: a communicator was finalized or destroyed "
                                    "while the group had calls on it; they are not made.")
                      : compat_result(group.comms[0], rondo_group_end());
    for (int i = 0; i < group.comm_count; i++)
        communicator_leave(group.comms[i]);
    return result;
}

static ncclResult_t end(bool run)
{
    ncclResult_t result = ncclSuccess, called = ncclSuccess;

    if (run && group.job_count)
        result = compat_job_run_all(group.jobs, group.job_count);
    for (int i = 0; i < group.job_count && !run; i++)
        compat_job_discard(&group.jobs[i]);
    if (group.calls && run && (!result || result == ncclInProgress))
        called = run_calls();
    else if (group.calls)
        drop_calls();
    for (int i = 0; i < group.comm_count; i++)
        communicator_drop(group.comms[i]);
    free(group.jobs);
    free(group.comms);
    memset(&group, 0, sizeof(group));
    return called ? called : result;
}

NCCL_API(ncclResult_t, ncclGroupStart, void)
{
    group.depth++;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclGroupEnd, void)
{
    ncclResult_t spoiled = group.spoiled;
    ncclResult_t result;

    if (!group.depth)
        return compat_fail(NULL, ncclInvalidUsage,
                           "ncclGroupEnd: there was no ncclGroupStart() on this thread.");
    if (group.depth > 1) {
        group.depth--;
        return ncclSuccess;
    }
    result = end(!spoiled);
    return spoiled ? spoiled : result;
}

/* ---- How long would it take? ----------------------------------------------------------------- */

static ncclResult_t check_answer(const ncclSimInfo_t *info)
{
    if (!info || (info->magic == NCCL_ABI_SIM_MAGIC &&
                  info->size >= offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float)))
        return ncclSuccess;
    return compat_fail(NULL, ncclInvalidArgument,
                       "ncclGroupSimulateEnd: the struct does not begin as "
                       "NCCL_SIM_INFO_INITIALIZER.");
}

/* The cost model knows the calls of the group; to it, making communicators takes no time. */
static ncclResult_t estimate(float *ret_microseconds)
{
    double microseconds = 0;
    rondo_result result = group.calls ? rondo_group_estimate(&microseconds) : RONDO_OK;

    *ret_microseconds = (float)microseconds;
    return group.calls ? compat_result(group.comms[0], result) : ncclSuccess;
}

/* Nothing of the group is done: it is dropped when its time is known. */
NCCL_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *simInfo)
{
    ncclResult_t result = check_answer(simInfo);
    float microseconds = 0;

    if (!group.depth)
        return compat_fail(NULL, ncclInvalidUsage,
                           "ncclGroupSimulateEnd: there was no ncclGroupStart() on this thread.");
    if (group.depth > 1) {
        compat_spoil(result);
        group.depth--;
        return result;
    }
    if (!result)
        result = group.spoiled ? group.spoiled : estimate(&microseconds);
    end(false);
    if (!result && simInfo)
        simInfo->estimatedTime = microseconds;
    return result;
}
