/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.h - the CUDA driver's functions, loaded when they are wanted: a library that was built
 * with CUDA runs on machines that have none. Only the driver is used, never the runtime, so there
 * is nothing to link and nothing whose version has to fit.
 *
 *     const struct cuda_driver *cuda;
 *
 *     result = cuda_load(&cuda);
 *     if (!result)
 *         result = cuda_result(cuda->cuMemAlloc(&memory, bytes), "cuMemAlloc");
 *
 * cuda.h makes macros of names that have versions, here as in the table, so each call gets the
 * version that the header describes.
 */
#ifndef RONDO_CUDA_DRIVER_H
#define RONDO_CUDA_DRIVER_H

#include "rondo/rondo.h"

#include <cuda.h>

/* The form that all drivers offer since CUDA 11.3; headers name newer ones. */
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                           cuuint64_t *id, CUgraph *graph,
                                           const CUgraphNode **nodes, size_t *count);

/* clang-format off */
#define CUDA_FUNCTIONS(use) \
    use(cuInit) use(cuDriverGetVersion) use(cuGetErrorName) use(cuGetErrorString) \
    use(cuDeviceGetCount) use(cuDeviceGet) use(cuDeviceGetName) use(cuDeviceGetUuid) \
    use(cuDeviceGetAttribute) use(cuDeviceTotalMem) use(cuDeviceGetPCIBusId) \
    use(cuDeviceCanAccessPeer) use(cuDeviceGetP2PAttribute) \
    use(cuDevicePrimaryCtxRetain) use(cuDevicePrimaryCtxRelease) \
    use(cuDevicePrimaryCtxGetState) use(cuStreamGetCtx) \
    use(cuCtxGetCurrent) use(cuCtxSetCurrent) use(cuCtxPushCurrent) use(cuCtxPopCurrent) \
    use(cuCtxGetDevice) use(cuCtxEnablePeerAccess) use(cuCtxGetStreamPriorityRange) \
    use(cuMemAlloc) use(cuMemFree) \
    use(cuMemHostAlloc) use(cuMemFreeHost) use(cuMemHostRegister) use(cuMemHostUnregister) \
    use(cuMemHostGetDevicePointer) use(cuMemGetAddressRange) use(cuPointerGetAttribute) \
    use(cuPointerGetAttributes) use(cuMemcpyAsync) use(cuMemcpyHtoDAsync) use(cuMemcpyDtoHAsync) \
    use(cuMemcpyDtoDAsync) use(cuMemsetD8Async) use(cuMemsetD32Async) use(cuStreamCreate) \
    use(cuStreamCreateWithPriority) use(cuMemGetHandleForAddressRange) \
    use(cuFlushGPUDirectRDMAWrites) \
    use(cuStreamDestroy) use(cuStreamSynchronize) use(cuStreamQuery) use(cuStreamWaitEvent) \
    use(cuStreamIsCapturing) use(cuStreamGetId) use(cuStreamGetCaptureInfo_v2) \
    use(cuStreamWriteValue32) use(cuStreamWaitValue32) \
    use(cuStreamWriteValue64) use(cuStreamWaitValue64) use(cuStreamBatchMemOp) use(cuEventCreate) \
    use(cuEventRecord) use(cuEventRecordWithFlags) use(cuEventQuery) use(cuEventSynchronize) \
    use(cuEventDestroy) \
    use(cuIpcGetMemHandle) use(cuIpcOpenMemHandle) \
    use(cuIpcCloseMemHandle) use(cuMemRetainAllocationHandle) use(cuMemRelease) \
    use(cuMemGetAllocationPropertiesFromHandle) use(cuMemExportToShareableHandle) \
    use(cuMemImportFromShareableHandle) use(cuMemAddressReserve) use(cuMemAddressFree) \
    use(cuMemMap) use(cuMemUnmap) use(cuMemSetAccess) use(cuMemGetAccess) \
    use(cuLaunchHostFunc) use(cuThreadExchangeStreamCaptureMode) \
    use(cuCtxGetLimit) use(cuCtxSetLimit) \
    use(cuModuleLoadData) use(cuModuleUnload) use(cuModuleGetFunction) use(cuFuncGetAttribute) \
    use(cuOccupancyMaxActiveBlocksPerMultiprocessor) use(cuLaunchKernel)
/* NULL in the table where the driver is older. */
#define CUDA_LATER_FUNCTIONS(use) \
    use(cuEventElapsedTime) use(cuMemCreate) use(cuMulticastCreate) use(cuMulticastAddDevice) \
    use(cuMulticastBindMem) use(cuMulticastUnbind) use(cuMulticastGetGranularity)
/* clang-format on */

struct cuda_driver {
#define CUDA_FIELD(name) __typeof__(&(name)) name;
    CUDA_FUNCTIONS(CUDA_FIELD)
    CUDA_LATER_FUNCTIONS(CUDA_FIELD)
#undef CUDA_FIELD
};

/* Load it and start it, once per process. RONDO_ERROR_UNSUPPORTED
 * with a sentence if there is no driver, or no device. Thread-safe. */
rondo_result cuda_load(const struct cuda_driver **ret_driver);
/* Returns the driver if it is in the process already, loaded as by cuda_load(): a program that
 * never used CUDA gets NULL, at once. */
const struct cuda_driver *cuda_loaded(void);

/* RONDO_OK, or what the driver says about `call` in a sentence. */
rondo_result cuda_result(CUresult code, const char *call);

#endif
