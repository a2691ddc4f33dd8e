/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_abi.h - the binary interface of libnccl.so.2: the types that programs built against nccl.h
 * pass to it.
 *
 * Declared here in our own words, so that this library builds without the CUDA toolkit. Names,
 * numbers and layouts are those of NCCL 2.28.9, with what later versions up to 2.32 added. Where
 * the toolkit is, tests/compat compares each layout with the installed nccl.h, and compiles this
 * room against that header (NCCL_ABI_INSTALLED), so the compiler compares all functions.
 */
#ifndef RONDO_COMPAT_NCCL_ABI_H
#define RONDO_COMPAT_NCCL_ABI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NCCL_ABI_INSTALLED
#include <nccl.h>
#else

typedef struct CUstream_st *cudaStream_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;

typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

typedef enum ncclResult_t {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR    -1
#define NCCL_SHRINK_DEFAULT   0x00
#define NCCL_SHRINK_ABORT     0x01
#define NCCL_REVOKE_DEFAULT   0x00

/* Later versions append fields; `size` says how many the caller's header knows. */
typedef struct ncclConfig_t {
    size_t size;
    unsigned int magic, version;
    int blocking;
    int cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;

typedef struct ncclSimInfo_t {
    size_t size;
    unsigned int magic, version;
    float estimatedTime;
} ncclSimInfo_t;

/* Operations that are made at run time have numbers from ncclNumOps up. */
typedef enum ncclRedOp_t {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum ncclDataType_t {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum ncclScalarResidence_t {
    ncclScalarDevice = 0,        /* read while the collective runs */
    ncclScalarHostImmediate = 1, /* read when the operation is made */
} ncclScalarResidence_t;

#endif /* NCCL_ABI_INSTALLED */

/* ---- What both headers of the tests have in common: numbers without a name in nccl.h --------- */

enum { NCCL_ABI_VERSION = 22809 }; /* what ncclGetVersion() says */
#define NCCL_ABI_CONFIG_MAGIC 0xcafebeefu
#define NCCL_ABI_SIM_MAGIC    0x74685283u

/* ---- From later versions --------------------------------------------------------------------- */

/* 2.31, options of one call. What is not set is NULL or NCCL_CONFIG_UNDEF_INT. */
typedef struct ncclCollConfig_t {
    size_t size;
    unsigned int magic, version;
    struct ncclConfigExt *ext;
    int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
    const char *algSelection;
    int forceAlgSelection; /* 1: a selection that cannot be had is an error */
    int CTAPolicy;
    uint64_t userProfilerTag;
} ncclCollConfig_t;

/* nccl_device.h, 2.28: ranks rank, rank + stride ... around the caller's */
typedef struct ncclTeam_t {
    int nRanks, rank, stride;
} ncclTeam_t;

/* nccl_device.h, 2.29 */
typedef struct ncclCommProperties_t {
    size_t size;
    unsigned int magic, version;
    int rank, nRanks, cudaDev, nvmlDev;
    bool deviceApiSupport, multimemSupport;
    int ginType;
    int nLsaTeams; /* this and what follows: 2.30 */
    bool hostRmaSupport;
    int railedGinType;
} ncclCommProperties_t;

#endif
