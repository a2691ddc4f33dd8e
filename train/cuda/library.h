/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - functions of the driver and of cuBLAS, loaded when they are wanted: the program runs
 * where neither is. The headers make macros of names that have versions, here as in the tables.
 */
#ifndef RONDO_TRAIN_CUDA_LIBRARY_H
#define RONDO_TRAIN_CUDA_LIBRARY_H

#include "rondo/rondo.h"

#include <cublas_v2.h>
#include <cuda.h>

/* CUDA 12.8 gave it a second version with the same parameters, which earlier drivers lack. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);

/* clang-format off */
#define DRIVER_FUNCTIONS(use) \
    use(cuInit) use(cuGetErrorName) use(cuGetErrorString) use(cuDeviceGetCount) use(cuDeviceGet) \
    use(cuDeviceGetAttribute) use(cuDevicePrimaryCtxRetain) use(cuDevicePrimaryCtxRelease) \
    use(cuCtxSetCurrent) use(cuMemAlloc) use(cuMemFree) use(cuMemHostAlloc) use(cuMemFreeHost) \
    use(cuMemcpyHtoDAsync) use(cuMemcpyDtoHAsync) use(cuMemcpyDtoDAsync) use(cuMemsetD8Async) \
    use(cuStreamCreate) use(cuStreamDestroy) use(cuStreamSynchronize) use(cuStreamWaitEvent) \
    use(cuEventCreate) use(cuEventRecord) use(cuEventDestroy) use(cuEventElapsedTime) \
    use(cuModuleLoadData) use(cuModuleUnload) use(cuModuleGetFunction) use(cuFuncGetAttribute) \
    use(cuLaunchKernel)
#define CUBLAS_FUNCTIONS(use) \
    use(cublasCreate) use(cublasDestroy) use(cublasSetStream) use(cublasSgemmStridedBatched) \
    use(cublasGetStatusString)
/* clang-format on */

#define LIBRARY_FIELD(name) __typeof__(&(name)) name;
struct driver_functions {
    DRIVER_FUNCTIONS(LIBRARY_FIELD)
};
struct cublas_functions {
    CUBLAS_FUNCTIONS(LIBRARY_FIELD)
};
#undef LIBRARY_FIELD

/* Filled by the functions below, which say what is missing. */
extern struct driver_functions driver;
extern struct cublas_functions cublas;

rondo_result library_load_driver(void);
rondo_result library_load_cublas(void);

#endif
