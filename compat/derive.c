/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * derive.c - communicators out of a communicator: split, shrunk, grown.
 *
 * A split is Rondo's, on `control`. Who shrinks does it without those who are left out: they may be
 * dead and make no call. So it sends no message on `control`, which the death of one more would
 * break for all: it opens among the others, who watch each other, and who may shrink once more
 * without whoever has died meanwhile. To grow, the rank that was asked for an id tells
 * the old ranks, and all meet with the new ones.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

static rondo_result split(struct job *job)
{
    const rondo_config config = compat_config_of_calls(job->comm ? job->comm : job->parent);
    rondo_comm *none = NULL;
    rondo_comm **place = job->comm ? &job->comm->calls : &none;
    rondo_result result =
        rondo_comm_split(job->parent->control, job->color, job->key, &config, place);

    if (!result && job->comm) {
        job->comm->size = rondo_comm_size(job->comm->calls);
        job->comm->rank = rondo_comm_rank(job->comm->calls);
    }
    return result;
}

static rondo_result meet(struct job *job)
{
    const rondo_config config = compat_config_of_calls(job->comm);

    return rondo_comm_open_id(&job->id, job->comm->size, job->comm->rank, &config,
                              &job->comm->calls);
}

static rondo_result shrink(struct job *job)
{
    const rondo_config config = compat_config_of_calls(job->comm);

    return rondo_comm_open_among(job->parent->control, job->ranks, job->comm->size, &config,
                                 &job->comm->calls);
}

struct offer {
    unsigned char made;
    unsigned char id[sizeof(rondo_unique_id)];
};

static rondo_result grow(struct job *job)
{
    const ncclComm_t parent = job->parent;
    struct offer own = {.made = job->has_id};
    struct offer *all = calloc((size_t)parent->size, sizeof(*all));
    rondo_result result;

    if (!all)
        return RONDO_ERROR_MEMORY;
    memcpy(own.id, job->id.bytes, sizeof(own.id));
    result = rondo_all_gather(&own, all, sizeof(own), RONDO_UINT8, parent->control, NULL);
    for (int rank = parent->size - 1; rank >= 0 && !result; rank--)
        if (all[rank].made) {
            memcpy(job->id.bytes, all[rank].id, sizeof(own.id));
            job->has_id = true;
        }
    free(all);
    if (result)
        return result;
    /* Without one the bytes are zero, and no id: the sentence says so. */
    return meet(job);
}

/* ---- Public ---------------------------------------------------------------------------------- */

/* A job on `parent`, with its communicator. */
static ncclResult_t prepare(ncclComm_t parent, int size, int rank, const ncclConfig_t *config,
                            struct job *job)
{
    ncclResult_t result;
    struct wishes wishes;

    /* What a configuration leaves out is the default, as with NCCL, not what the parent has. */
    result = compat_config_read(config, config ? NULL : &parent->wishes, &wishes);
    if (result)
        return result;
    job->comm = communicator_new(size, rank, parent->device, &wishes);
    if (!job->comm)
        return compat_fail(parent, ncclSystemError, "Out of memory for a communicator.");
    communicator_hold(job->comm);
    return ncclSuccess;
}

static ncclResult_t submit(ncclComm_t parent, struct job *job)
{
    job->parent = parent;
    communicator_hold(parent);
    *job->ret_comm = job->comm;
    return compat_job_submit(job);
}

static ncclResult_t start_split(ncclComm_t comm, struct job *job, const ncclConfig_t *config)
{
    ncclResult_t result = communicator_check(comm, "ncclCommSplit");

    if (!result && !job->ret_comm)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommSplit: no place for the new communicator.");
    if (!result && job->color < NCCL_SPLIT_NOCOLOR)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommSplit: the color is %d; it must be at least 0, or "
                             "NCCL_SPLIT_NOCOLOR.",
                             job->color);
    if (!result && job->color != NCCL_SPLIT_NOCOLOR)
        result = prepare(comm, comm->size, comm->rank, config, job);
    return result ? result : submit(comm, job);
}

NCCL_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
         ncclConfig_t *config)
{
    struct job job = {.run = split, .ret_comm = newcomm, .color = color, .key = key};

    return compat_spoil(start_split(comm, &job, config));
}

/* The ranks that are not excluded, in order; returns how many, -1: an excluded one is none. */
static int survivors(const ncclComm_t comm, const int *excluded, int count, int *ranks)
{
    int left = 0;

    for (int rank = 0; rank < comm->size; rank++)
        ranks[rank] = 1;
    for (int i = 0; i < count; i++) {
        if (excluded[i] < 0 || excluded[i] >= comm->size)
            return -1;
        ranks[excluded[i]] = 0;
    }
    if (!ranks[comm->rank])
        return -1;
    for (int rank = 0; rank < comm->size; rank++)
        if (ranks[rank])
            ranks[left++] = rank;
    return left;
}

static ncclResult_t start_shrink(ncclComm_t comm, struct job *job, int size,
                                 const ncclConfig_t *config)
{
    int rank = 0;
    ncclResult_t result;

    while (job->ranks[rank] != comm->rank)
        rank++;
    result = prepare(comm, size, rank, config, job);
    return result ? result : submit(comm, job);
}

static void end_calls(struct job *job)
{
    /* Release, pairs with the acquire in ncclCommGetAsyncError(). */
    atomic_store_explicit(&job->parent->shrunk, true, memory_order_release);
    rondo_comm_abort(job->parent->calls);
}

NCCL_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *excludeRanksList,
         int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    bool aborts = shrinkFlags == NCCL_SHRINK_ABORT;
    struct job job = {
        .run = shrink, .ret_comm = newcomm, .aborts = aborts, .begin = aborts ? end_calls : NULL};
    ncclResult_t result = aborts ? communicator_check_made(comm, "ncclCommShrink")
                                 : communicator_check(comm, "ncclCommShrink");
    int size;

    if (!result && (!newcomm || !excludeRanksList || excludeRanksCount < 1))
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommShrink: needs ranks to leave out and a place for the new "
                             "communicator.");
    if (!result && shrinkFlags != NCCL_SHRINK_DEFAULT && !aborts)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommShrink: the flags are %d; they may be NCCL_SHRINK_DEFAULT or "
                             "NCCL_SHRINK_ABORT.",
                             shrinkFlags);
    if (result)
        return compat_spoil(result);
    job.ranks = malloc((size_t)comm->size * sizeof(int));
    if (!job.ranks)
        return compat_spoil(compat_fail(comm, ncclSystemError, "Out of memory for shrinking."));
    size = survivors(comm, excludeRanksList, excludeRanksCount, job.ranks);
    if (size < 1)
        result =
            compat_fail(comm, ncclInvalidArgument,
                        "ncclCommShrink: of %d excluded ranks one is not in the communicator, or "
                        "is the caller.",
                        excludeRanksCount);
    if (!result)
        result = start_shrink(comm, &job, size, config);
    if (!job.parent) /* it was not submitted */
        free(job.ranks);
    return compat_spoil(result);
}

NCCL_API(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId *uniqueId)
{
    ncclResult_t result = communicator_check(comm, "ncclCommGetUniqueId");

    if (result)
        return result;
    if (comm->has_grow_id)
        return compat_fail(comm, ncclInvalidUsage,
                           "ncclCommGetUniqueId: the last id was not used by ncclCommGrow() yet.");
    result = pncclGetUniqueId(uniqueId);
    if (result)
        return result;
    comm->grow_id = *uniqueId;
    comm->has_grow_id = true;
    return ncclSuccess;
}

/* The id that this rank was asked for is used. */
static void take_id(struct job *job)
{
    ncclComm_t parent = job->parent;

    if (!job->has_id && parent->has_grow_id) {
        memcpy(job->id.bytes, parent->grow_id.internal, sizeof(job->id.bytes));
        job->has_id = true;
    }
    parent->has_grow_id = false;
}

static ncclResult_t grow_old(ncclComm_t comm, int size, const ncclUniqueId *id, struct job *job,
                             const ncclConfig_t *config)
{
    ncclResult_t result = communicator_check(comm, "ncclCommGrow");

    if (!result && size <= comm->size)
        result = compat_fail(comm, ncclInvalidArgument,
                             "ncclCommGrow: %d ranks are not more than the %d of now.", size,
                             comm->size);
    if (!result)
        result = prepare(comm, size, comm->rank, config, job);
    if (result)
        return result;
    job->run = grow;
    job->begin = take_id;
    job->has_id = id != NULL;
    if (id)
        memcpy(job->id.bytes, id->internal, sizeof(job->id.bytes));
    return submit(comm, job);
}

NCCL_API(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
         int rank, ncclComm_t *newcomm, ncclConfig_t *config)
{
    struct job job = {.ret_comm = newcomm};

    if (!newcomm)
        return compat_spoil(compat_fail(comm, ncclInvalidArgument,
                                        "ncclCommGrow: no place for the new communicator."));
    if (comm)
        return compat_spoil(grow_old(comm, nRanks, uniqueId, &job, config));
    if (!uniqueId)
        return compat_spoil(compat_fail(NULL, ncclInvalidArgument,
                                        "ncclCommGrow: a new rank needs the id that "
                                        "ncclCommGetUniqueId() gave to an old one."));
    return pncclCommInitRankConfig(newcomm, nRanks, *uniqueId, rank, config);
}
