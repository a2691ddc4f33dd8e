// SPDX-License-Identifier: BSD-3-Clause
// layouts.cc - is compat/nccl_abi.h what the installed nccl.h says? Compiled, never run.
#include <nccl.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Its own macros are the installed header's, by the same names.
#undef NCCL_CONFIG_UNDEF_INT
#undef NCCL_CONFIG_UNDEF_PTR
#undef NCCL_SPLIT_NOCOLOR
#undef NCCL_SHRINK_DEFAULT
#undef NCCL_SHRINK_ABORT
#undef NCCL_REVOKE_DEFAULT
namespace ours
{
#include "compat/nccl_abi.h"
}

#define SAME(what)  static_assert(sizeof(ours::what) == sizeof(::what), #what)
#define FIELD(type, field)                                                              \
    static_assert(offsetof(ours::type, field) == offsetof(::type, field) &&             \
                      sizeof(ours::type::field) == sizeof(::type::field),               \
                  #type "." #field)
#define VALUE(name) static_assert((long)ours::name == (long)::name, #name)

SAME(ncclUniqueId);
SAME(ncclResult_t);
SAME(ncclRedOp_t);
SAME(ncclDataType_t);
SAME(ncclScalarResidence_t);
SAME(ncclSimInfo_t);
FIELD(ncclSimInfo_t, size);
FIELD(ncclSimInfo_t, magic);
FIELD(ncclSimInfo_t, version);
FIELD(ncclSimInfo_t, estimatedTime);
SAME(ncclConfig_t);
FIELD(ncclConfig_t, size);
FIELD(ncclConfig_t, magic);
FIELD(ncclConfig_t, version);
FIELD(ncclConfig_t, blocking);
FIELD(ncclConfig_t, cgaClusterSize);
FIELD(ncclConfig_t, minCTAs);
FIELD(ncclConfig_t, maxCTAs);
FIELD(ncclConfig_t, netName);
FIELD(ncclConfig_t, splitShare);
FIELD(ncclConfig_t, trafficClass);
FIELD(ncclConfig_t, commName);
FIELD(ncclConfig_t, collnetEnable);
FIELD(ncclConfig_t, CTAPolicy);
FIELD(ncclConfig_t, shrinkShare);
FIELD(ncclConfig_t, nvlsCTAs);
FIELD(ncclConfig_t, nChannelsPerNetPeer);
FIELD(ncclConfig_t, nvlinkCentricSched);
VALUE(ncclSuccess);
VALUE(ncclUnhandledCudaError);
VALUE(ncclSystemError);
VALUE(ncclInternalError);
VALUE(ncclInvalidArgument);
VALUE(ncclInvalidUsage);
VALUE(ncclRemoteError);
VALUE(ncclInProgress);
VALUE(ncclSum);
VALUE(ncclProd);
VALUE(ncclMax);
VALUE(ncclMin);
VALUE(ncclAvg);
VALUE(ncclNumOps);
VALUE(ncclInt8);
VALUE(ncclUint8);
VALUE(ncclInt32);
VALUE(ncclUint32);
VALUE(ncclInt64);
VALUE(ncclUint64);
VALUE(ncclFloat16);
VALUE(ncclFloat32);
VALUE(ncclFloat64);
VALUE(ncclBfloat16);
VALUE(ncclFloat8e4m3);
VALUE(ncclFloat8e5m2);
VALUE(ncclNumTypes);
VALUE(ncclScalarDevice);
VALUE(ncclScalarHostImmediate);
static_assert(INT_MIN == NCCL_CONFIG_UNDEF_INT, "not set");
static_assert(ours::NCCL_ABI_VERSION >= 22809, "the version that is said to be there");
