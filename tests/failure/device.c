/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - a rank's CUDA device, its stream and its memory. */
#include "device.h"

#include "../gpu/device.h"

#include "rondo/cuda.h"

#include <signal.h>
#include <stdint.h>

bool soak_device_open(int rank, struct soak_device *ret_device)
{
    CUstream stream;
    int count = device_count();

    if (!count || !device_use(rank % count) ||
        device_driver()->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return false;
    ret_device->number = rank % count;
    ret_device->cuda_stream = stream;
    return rondo_stream_open_cuda(stream, &ret_device->stream) == RONDO_OK;
}

void soak_device_close(struct soak_device *device)
{
    rondo_stream_close(device->stream);
    if (device->cuda_stream)
        device_driver()->cuStreamDestroy(device->cuda_stream);
}

/* Only the stand-in's work stops with the process. */
void soak_device_stop(void)
{
    void (*stop)(void) = device_standin_stop();

    if (stop)
        stop();
    else
        raise(SIGSTOP);
}

void *soak_device_alloc(enum soak_memory kind, size_t bytes)
{
    void *memory;

    if (kind == MEMORY_CUDA)
        return device_alloc(MEMORY_DEVICE, bytes);
    return rondo_cuda_mem_alloc(bytes, &memory) ? NULL : memory;
}

void soak_device_free(enum soak_memory kind, void *memory)
{
    if (kind == MEMORY_CUDA)
        device_free(MEMORY_DEVICE, memory);
    else
        rondo_cuda_mem_free(memory);
}

bool soak_device_copy(void *to, const void *from, size_t bytes)
{
    return device_copy(to, from, bytes);
}
