/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - what tests need of CUDA beside Rondo: the driver's functions, found at run time, and
 * memory that is written and read from the host. On this project's own machines the driver is the
 * one of standin; on a machine with a GPU the same programs run on that.
 */
#ifndef RONDO_TESTS_GPU_DEVICE_H
#define RONDO_TESTS_GPU_DEVICE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define DEVICE_FUNCTIONS(use) \
    use(cuInit) use(cuDeviceGet) use(cuDeviceGetCount) use(cuDevicePrimaryCtxRetain) \
    use(cuCtxSetCurrent) use(cuCtxGetDevice) use(cuMemAlloc) use(cuMemFree) \
    use(cuMemAllocManaged) use(cuMemHostAlloc) use(cuMemFreeHost) use(cuMemcpy) \
    use(cuMemcpyAsync) use(cuMemsetD8Async) use(cuStreamCreate) use(cuStreamDestroy) \
    use(cuStreamSynchronize) use(cuStreamQuery) use(cuStreamBeginCapture) \
    use(cuStreamEndCapture) use(cuGraphInstantiate) use(cuGraphLaunch) use(cuGraphDestroy) \
    use(cuGraphExecDestroy) use(cuStreamWaitValue32) use(cuStreamWriteValue32) \
    use(cuMemHostGetDevicePointer) use(cuEventCreate) use(cuEventRecord) \
    use(cuStreamWaitEvent) use(cuEventDestroy) use(cuMemGetAllocationGranularity) \
    use(cuMemCreate) use(cuMemRelease) use(cuMemAddressReserve) use(cuMemAddressFree) \
    use(cuMemMap) use(cuMemUnmap) use(cuMemSetAccess) use(cuMemGetInfo)
/* clang-format on */

struct device_driver {
#define DEVICE_FIELD(name) __typeof__(&(name)) name;
    DEVICE_FUNCTIONS(DEVICE_FIELD)
#undef DEVICE_FIELD
};

/* NULL: there is no driver, or no device. */
const struct device_driver *device_driver(void);
int device_count(void);
/* The same, but this process does not begin to use CUDA, so processes that it forks can. */
int device_count_apart(void);
/* The stand-in's way to stop this process (its standin.h), NULL: this is no stand-in. Initialises
 * nothing. */
void (*device_standin_stop(void))(void);
/* True if the driver is the stand-in, whose CUDA_STANDIN_FAIL has its calls fail. This process does
 * not load it. */
bool device_can_be_told_to_fail(void);
/* Kernels of that name that this process has asked for, and copies; -1: this is no stand-in. */
long device_kernels(const char *name);
long device_copies(void);
/* The stream does nothing from now on until the flag, of pinned memory, is 1. */
bool device_hold(CUstream stream, uint32_t *flag);
/* The device's primary context becomes current on this thread. */
bool device_use(int number);

enum device_memory {
    MEMORY_DEVICE,
    MEMORY_MANAGED,
    MEMORY_PINNED,
    MEMORY_PLAIN,
    MEMORY_PIECES, /* of virtual memory management, as small as can be, to be shared by files */
    MEMORY_CLOSED, /* the same, but not made to be shared */
    MEMORY_KINDS
};

/* NULL: there is none. */
void *device_alloc(enum device_memory kind, size_t bytes);
void device_free(enum device_memory kind, void *memory);
/* pieces.c: the same for the last two kinds; the current device alone may use them. */
void *pieces_alloc(size_t bytes, bool shared);
void pieces_free(void *memory);
/* To and from any kind, after all work on it. The copy is over when this returns, which the driver
 * does not promise of what comes from pageable memory: streams of tests would overtake it. */
bool device_copy(void *to, const void *from, size_t bytes);

#endif
