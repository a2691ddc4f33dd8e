/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the device that a communicator works on, and what kind of memory a pointer is.
 *
 * A device is its primary context, which is the one of the runtime API. Contexts are per thread:
 * cuda_enter() makes it current for what follows, cuda_leave() restores the caller's.
 */
#ifndef RONDO_CUDA_DEVICE_H
#define RONDO_CUDA_DEVICE_H

#include "cuda/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct cuda_device {
    const struct cuda_driver *driver;
    CUcontext context;
    CUdevice handle;
    int number;
    unsigned char uuid[16];
    char name[64];
};

/* The number of the current context's device; -1: there is none, or no driver was loaded. */
int cuda_current_number(void);
/* Retains the primary context of that device. */
rondo_result cuda_device_open(int number, struct cuda_device *ret_device);
void cuda_device_close(struct cuda_device *device);

rondo_result cuda_enter(const struct cuda_device *device);
void cuda_leave(const struct cuda_device *device);

/* True if the handle names another stream in each context: a default one, or the thread's own. */
static inline bool cuda_is_everywhere(CUstream stream)
{
    return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

enum cuda_memory {
    CUDA_MEMORY_HOST,   /* that the device cannot reach: neither registered nor allocated by CUDA */
    CUDA_MEMORY_PINNED, /* of the host, at this address for the device too */
    CUDA_MEMORY_DEVICE,
    CUDA_MEMORY_MANAGED,
};

/* The kind of memory at `memory`; any pointer, NULL too. */
enum cuda_memory cuda_memory_kind(const struct cuda_driver *driver, const void *memory);

/*
 * Counts the bytes that CUDA copies from or to there. Real programs name four elements of a buffer
 * of four bytes: what goes beyond an allocation, but not beyond what CUDA rounds it up to, is left
 * out.
 */
size_t cuda_copyable(const struct cuda_driver *driver, CUdeviceptr memory, size_t bytes);

static inline CUdeviceptr cuda_address(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

#endif
