/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_header.h - the installed nccl.h; where there is none, its functions in our own words, so
 * that these tests run everywhere. */
#ifndef RONDO_TESTS_COMPAT_NCCL_HEADER_H
#define RONDO_TESTS_COMPAT_NCCL_HEADER_H

#ifdef HAVE_NCCL_H
#include <nccl.h>
#else
#include "compat/nccl_abi.h"

#define NCCL_CONFIG_INITIALIZER                                                               \
    {                                                                                         \
        sizeof(ncclConfig_t), NCCL_ABI_CONFIG_MAGIC, NCCL_ABI_VERSION, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,              \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,              \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,              \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,              \
            NCCL_CONFIG_UNDEF_INT                                                             \
    }
#define NCCL_SIM_INFO_INITIALIZER                                          \
    {                                                                      \
        sizeof(ncclSimInfo_t), NCCL_ABI_SIM_MAGIC, NCCL_ABI_VERSION, -1.0f \
    }

#define RESULT(name, ...) ncclResult_t name(__VA_ARGS__)
#define BUFFERS           const void *send, void *recv, size_t count, ncclDataType_t type
#define WHERE             ncclComm_t comm, cudaStream_t stream
RESULT(ncclMemAlloc, void **memory, size_t size);
RESULT(ncclMemFree, void *memory);
RESULT(ncclGetVersion, int *version);
RESULT(ncclGetUniqueId, ncclUniqueId *id);
RESULT(ncclCommInitRank, ncclComm_t *comm, int size, ncclUniqueId id, int rank);
RESULT(ncclCommInitRankConfig, ncclComm_t *comm, int size, ncclUniqueId id, int rank,
       ncclConfig_t *config);
RESULT(ncclCommInitRankScalable, ncclComm_t *comm, int size, int rank, int count, ncclUniqueId *ids,
       ncclConfig_t *config);
RESULT(ncclCommInitAll, ncclComm_t *comms, int size, const int *devices);
RESULT(ncclCommFinalize, ncclComm_t comm);
RESULT(ncclCommDestroy, ncclComm_t comm);
RESULT(ncclCommAbort, ncclComm_t comm);
RESULT(ncclCommRevoke, ncclComm_t comm, int flags);
RESULT(ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *part, ncclConfig_t *config);
RESULT(ncclCommShrink, ncclComm_t comm, int *excluded, int count, ncclComm_t *rest,
       ncclConfig_t *config, int flags);
RESULT(ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *state);
RESULT(ncclCommCount, const ncclComm_t comm, int *count);
RESULT(ncclCommUserRank, const ncclComm_t comm, int *rank);
RESULT(ncclCommCuDevice, const ncclComm_t comm, int *device);
RESULT(ncclCommRegister, const ncclComm_t comm, void *memory, size_t size, void **handle);
RESULT(ncclCommDeregister, const ncclComm_t comm, void *handle);
RESULT(ncclCommWindowRegister, ncclComm_t comm, void *memory, size_t size, ncclWindow_t *window,
       int flags);
RESULT(ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t window);
RESULT(ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t type,
       ncclScalarResidence_t residence, ncclComm_t comm);
RESULT(ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);
RESULT(ncclReduce, BUFFERS, ncclRedOp_t op, int root, WHERE);
RESULT(ncclBcast, void *buffer, size_t count, ncclDataType_t type, int root, WHERE);
RESULT(ncclBroadcast, BUFFERS, int root, WHERE);
RESULT(ncclAllReduce, BUFFERS, ncclRedOp_t op, WHERE);
RESULT(ncclReduceScatter, BUFFERS, ncclRedOp_t op, WHERE);
RESULT(ncclAllGather, BUFFERS, WHERE);
RESULT(ncclAlltoAll, BUFFERS, WHERE);
RESULT(ncclGather, BUFFERS, int root, WHERE);
RESULT(ncclScatter, BUFFERS, int root, WHERE);
RESULT(ncclSend, const void *send, size_t count, ncclDataType_t type, int peer, WHERE);
RESULT(ncclRecv, void *recv, size_t count, ncclDataType_t type, int peer, WHERE);
RESULT(ncclGroupStart, void);
RESULT(ncclGroupEnd, void);
RESULT(ncclGroupSimulateEnd, ncclSimInfo_t *info);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
#undef RESULT
#undef BUFFERS
#undef WHERE
#endif /* HAVE_NCCL_H */

/* These belong to later versions than the installed header's. */
#if !defined(HAVE_NCCL_H) || NCCL_VERSION_CODE < 22900
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId *id, int rank,
                          ncclComm_t *grown, ncclConfig_t *config);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **memory);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
#endif

#endif
