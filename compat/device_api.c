/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_api.c - what is not offered, and the questions by which clients find that out.
 *
 * Kernels that communicate by themselves read structs of NCCL's on the device, through code that
 * nccl_device.h puts into the client; no other library can give it those. The functions are there
 * all the same, as a client that was linked against them would not start without: each says no.
 */
#include "compat/compat.h"

static ncclResult_t refuse(const char *function, const char *why)
{
    return compat_spoil(compat_fail(NULL, ncclInvalidUsage, "%s: %s.", function, why));
}

/* ---- Who am I, and what can be done ---------------------------------------------------------- */

/* True if the client's struct has this field. */
#define HAS(properties, field) \
    ((properties)->size >= offsetof(ncclCommProperties_t, field) + sizeof((properties)->field))

NCCL_API(ncclResult_t, ncclCommQueryProperties, ncclComm_t comm, ncclCommProperties_t *properties)
{
    ncclResult_t result = communicator_check(comm, "ncclCommQueryProperties");

    if (result)
        return result;
    if (!properties || properties->magic != NCCL_ABI_CONFIG_MAGIC || !HAS(properties, cudaDev))
        return compat_fail(comm, ncclInvalidArgument,
                           "ncclCommQueryProperties: the struct does not begin as "
                           "NCCL_COMM_PROPERTIES_INITIALIZER.");
    properties->rank = comm->rank;
    properties->nRanks = comm->size;
    properties->cudaDev = comm->device;
    if (HAS(properties, nvmlDev))
        properties->nvmlDev = comm->device;
    if (HAS(properties, deviceApiSupport))
        properties->deviceApiSupport = false;
    if (HAS(properties, multimemSupport))
        properties->multimemSupport = false;
    if (HAS(properties, ginType))
        properties->ginType = 0;
    if (HAS(properties, nLsaTeams))
        properties->nLsaTeams = comm->size; /* of one rank each, see ncclTeamLsa() */
    if (HAS(properties, hostRmaSupport))
        properties->hostRmaSupport = false;
    if (HAS(properties, railedGinType))
        properties->railedGinType = 0;
    return ncclSuccess;
}

static ncclTeam_t team(ncclComm_t comm, bool alone)
{
    if (!comm || alone)
        return (ncclTeam_t){.nRanks = 1, .rank = 0, .stride = 1};
    return (ncclTeam_t){.nRanks = comm->size, .rank = comm->rank, .stride = 1};
}

NCCL_API(ncclTeam_t, ncclTeamWorld, ncclComm_t comm)
{
    return team(comm, false);
}

/* Those whose memory a kernel of the client may load from: nobody else's. */
NCCL_API(ncclTeam_t, ncclTeamLsa, ncclComm_t comm)
{
    return team(comm, true);
}

NCCL_API(ncclTeam_t, ncclTeamRail, ncclComm_t comm)
{
    return team(comm, false);
}

NCCL_API(ncclTeam_t, ncclTeamCft, ncclComm_t comm, int mode)
{
    (void)mode;
    return team(comm, true);
}

NCCL_API(ncclTeam_t, ncclTeamCftMultimem, ncclComm_t comm)
{
    return team(comm, true);
}

NCCL_API(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t of, int rank)
{
    return (comm ? comm->rank : 0) + (rank - of.rank) * of.stride;
}

NCCL_API(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t of, int rank)
{
    (void)comm;
    return (rank - of.rank) * of.stride;
}

/* Slots of 8 bytes: a size that clients ask for before they make what then is refused. */
NCCL_API(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize)
{
    return maxElts * ((maxEltSize + 7) / 8);
}

/* ---- No -------------------------------------------------------------------------------------- */
/* Their arguments, whatever they are, are not looked at. */

static const char no_device[] = "Rondo does not offer NCCL's device interface";
static const char no_one_sided[] =
    "Rondo has no one-sided calls; use ncclSend and ncclRecv in a group";
static const char no_memory[] =
    "Rondo keeps the memory of a communicator as long as it lives; destroy it, and make it again";
static const char no_parameters[] =
    "there are no parameters of NCCL here; `rondo doctor` lists Rondo's settings";
static const char no_encryption[] =
    "RONDO_SECURITY=secret encrypts what goes over TCP; NCCL's own way is not there";

NCCL_API(ncclResult_t, ncclDevCommCreate, void)
{
    return refuse("ncclDevCommCreate", no_device);
}

NCCL_API(ncclResult_t, ncclDevCommDestroy, void)
{
    return refuse("ncclDevCommDestroy", no_device);
}

NCCL_API(ncclResult_t, ncclLsaBarrierCreateRequirement, void)
{
    return refuse("ncclLsaBarrierCreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclGinBarrierCreateRequirement, void)
{
    return refuse("ncclGinBarrierCreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclGinInboxA2ACreateRequirement, void)
{
    return refuse("ncclGinInboxA2ACreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclGinOutboxCreateRequirement, void)
{
    return refuse("ncclGinOutboxCreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclCftBarrierCreateRequirement, void)
{
    return refuse("ncclCftBarrierCreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclLLA2ACreateRequirement, void)
{
    return refuse("ncclLLA2ACreateRequirement", no_device);
}

NCCL_API(ncclResult_t, ncclGetLsaMultimemDevicePointer, void)
{
    return refuse("ncclGetLsaMultimemDevicePointer", no_device);
}

NCCL_API(ncclResult_t, ncclGetMultimemDevicePointer, void)
{
    return refuse("ncclGetMultimemDevicePointer", no_device);
}

NCCL_API(ncclResult_t, ncclGetLsaDevicePointer, void)
{
    return refuse("ncclGetLsaDevicePointer", no_device);
}

NCCL_API(ncclResult_t, ncclGetPeerDevicePointer, void)
{
    return refuse("ncclGetPeerDevicePointer", no_device);
}

NCCL_API(ncclResult_t, ncclGetMultimemDeviceLeInfo, void)
{
    return refuse("ncclGetMultimemDeviceLeInfo", no_device);
}

NCCL_API(ncclResult_t, ncclGetCftDeviceLeInfo, void)
{
    return refuse("ncclGetCftDeviceLeInfo", no_device);
}

NCCL_API(ncclResult_t, ncclGetPeerDeviceLeInfo, void)
{
    return refuse("ncclGetPeerDeviceLeInfo", no_device);
}

NCCL_API(ncclResult_t, ncclPutSignal, void)
{
    return refuse("ncclPutSignal", no_one_sided);
}

NCCL_API(ncclResult_t, ncclSignal, void)
{
    return refuse("ncclSignal", no_one_sided);
}

NCCL_API(ncclResult_t, ncclWaitSignal, void)
{
    return refuse("ncclWaitSignal", no_one_sided);
}

NCCL_API(ncclResult_t, ncclCommSuspend, void)
{
    return refuse("ncclCommSuspend", no_memory);
}

NCCL_API(ncclResult_t, ncclCommResume, void)
{
    return refuse("ncclCommResume", no_memory);
}

NCCL_API(ncclResult_t, ncclCommMemStats, void)
{
    return refuse("ncclCommMemStats", no_memory);
}

NCCL_API(ncclResult_t, ncclParamBind, void)
{
    return refuse("ncclParamBind", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetI8, void)
{
    return refuse("ncclParamGetI8", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetI16, void)
{
    return refuse("ncclParamGetI16", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetI32, void)
{
    return refuse("ncclParamGetI32", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetI64, void)
{
    return refuse("ncclParamGetI64", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetU8, void)
{
    return refuse("ncclParamGetU8", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetU16, void)
{
    return refuse("ncclParamGetU16", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetU32, void)
{
    return refuse("ncclParamGetU32", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetU64, void)
{
    return refuse("ncclParamGetU64", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetStr, void)
{
    return refuse("ncclParamGetStr", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGet, void)
{
    return refuse("ncclParamGet", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetParameter, void)
{
    return refuse("ncclParamGetParameter", no_parameters);
}

NCCL_API(ncclResult_t, ncclParamGetAllParameterKeys, void)
{
    return refuse("ncclParamGetAllParameterKeys", no_parameters);
}

NCCL_API(ncclResult_t, ncclSetEncryption, void)
{
    return refuse("ncclSetEncryption", no_encryption);
}

/* Prints nothing, as there are no parameters. */
NCCL_API(void, ncclParamDumpAll, void)
{
}
