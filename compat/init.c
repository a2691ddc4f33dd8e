/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - communicators out of ids. An id of NCCL's is one of Rondo's: 128 bytes by value.
 *
 * The handle is there when the function returns, also in a group and when it does not block; only
 * the ranks still have to meet.
 */
#include "compat/compat.h"

#include <string.h>

_Static_assert(sizeof(ncclUniqueId) == sizeof(rondo_unique_id), "ids have 128 bytes");

NCCL_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId *uniqueId)
{
    rondo_unique_id id;
    rondo_result result;

    if (!uniqueId)
        return compat_fail(NULL, ncclInvalidArgument, "ncclGetUniqueId: no place for the id.");
    result = rondo_unique_id_create(&id);
    if (!result)
        memcpy(uniqueId->internal, id.bytes, sizeof(id.bytes));
    return compat_result(NULL, result);
}

static rondo_result join(struct job *job)
{
    const rondo_config config = compat_config_of_calls(job->comm);

    return rondo_comm_open_id(&job->id, job->comm->size, job->comm->rank, &config,
                              &job->comm->calls);
}

struct place {
    ncclComm_t *ret_comm;
    const ncclUniqueId *id;
    int size, rank, device;
};

static ncclResult_t init(const struct place *place, const ncclConfig_t *config)
{
    struct job job = {.run = join, .ret_comm = place->ret_comm, .has_id = true};
    ncclResult_t result;
    struct wishes wishes;

    if (!place->ret_comm || !place->id)
        return compat_fail(NULL, ncclInvalidArgument,
                           "ncclCommInitRank: needs an id and a place for the communicator.");
    if (place->size < 1 || place->rank < 0 || place->rank >= place->size)
        return compat_fail(NULL, ncclInvalidArgument,
                           "ncclCommInitRank: there is no rank %d of %d; ranks go from 0 to nranks "
                           "- 1.",
                           place->rank, place->size);
    result = compat_device_check();
    if (!result)
        result = compat_config_read(config, NULL, &wishes);
    if (result)
        return result;
    job.comm = communicator_new(place->size, place->rank, place->device, &wishes);
    if (!job.comm)
        return compat_fail(NULL, ncclSystemError, "Out of memory for a communicator.");
    communicator_hold(job.comm);
    memcpy(job.id.bytes, place->id->internal, sizeof(job.id.bytes));
    *place->ret_comm = job.comm;
    return compat_job_submit(&job);
}

NCCL_API(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId,
         int rank)
{
    return compat_spoil(
        init(&(struct place){comm, &commId, nranks, rank, compat_device_current()}, NULL));
}

NCCL_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId commId,
         int rank, ncclConfig_t *config)
{
    return compat_spoil(
        init(&(struct place){comm, &commId, nranks, rank, compat_device_current()}, config));
}

/* Several ids are to speed up the meeting of many ranks; here all meet at the first. */
NCCL_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank,
         int nId, ncclUniqueId *commIds, ncclConfig_t *config)
{
    if (nId < 1 || nId > nranks)
        return compat_spoil(compat_fail(NULL, ncclInvalidArgument,
                                        "ncclCommInitRankScalable: %d ids for %d ranks; there must "
                                        "be at least one, and not more than ranks.",
                                        nId, nranks));
    return compat_spoil(
        init(&(struct place){newcomm, commIds, nranks, myrank, compat_device_current()}, config));
}

/* The device of a rank: as the client says, else one after the other, and again from the first. */
static int device_of(const int *devices, int rank)
{
    int count = compat_device_count();

    if (!count)
        return -1;
    return devices ? devices[rank] : rank % count;
}

static ncclResult_t check_devices(int count, const int *devices)
{
    int there = compat_device_count();

    for (int rank = 0; devices && there && rank < count; rank++)
        if (devices[rank] < 0 || devices[rank] >= there)
            return compat_fail(NULL, ncclInvalidArgument,
                               "ncclCommInitAll: there is no device %d; there are %d.",
                               devices[rank], there);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommInitAll, ncclComm_t *comm, int ndev, const int *devlist)
{
    ncclUniqueId id;
    ncclResult_t result;

    if (!comm || ndev < 1)
        return compat_fail(NULL, ncclInvalidArgument,
                           "ncclCommInitAll: needs a place for %d communicators, and at least one.",
                           ndev);
    result = check_devices(ndev, devlist);
    if (!result)
        result = pncclGetUniqueId(&id);
    if (result)
        return compat_spoil(result);
    pncclGroupStart();
    for (int rank = 0; rank < ndev && !result; rank++)
        result = compat_spoil(
            init(&(struct place){&comm[rank], &id, ndev, rank, device_of(devlist, rank)}, NULL));
    return pncclGroupEnd();
}
