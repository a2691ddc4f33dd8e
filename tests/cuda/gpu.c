/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - see gpu.h. */
#include "tests/cuda/gpu.h"

bool gpu_open(struct gpu *gpu)
{
    struct gpu open = {.stream = NULL};

    if (cuda_device_open(0, &open.device))
        return false;
    *gpu = open;
    if (cuda_enter(&gpu->device))
        return false;
    return !cuda_result(gpu->device.driver->cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate") &&
           !cuda_launcher_open(&gpu->device, &gpu->launcher);
}

void gpu_close(struct gpu *gpu)
{
    cuda_launcher_close(gpu->launcher);
    gpu->device.driver->cuStreamDestroy(gpu->stream);
    cuda_leave(&gpu->device);
    cuda_device_close(&gpu->device);
}

CUdeviceptr gpu_alloc(struct gpu *gpu, size_t bytes)
{
    CUdeviceptr memory = 0;

    return cuda_result(gpu->device.driver->cuMemAlloc(&memory, bytes), "cuMemAlloc") ? 0 : memory;
}

void gpu_free(struct gpu *gpu, CUdeviceptr memory)
{
    gpu->device.driver->cuMemFree(memory);
}

static bool through(struct gpu *gpu)
{
    return !cuda_result(gpu->device.driver->cuStreamSynchronize(gpu->stream),
                        "cuStreamSynchronize");
}

bool gpu_upload(struct gpu *gpu, CUdeviceptr to, const void *from, size_t bytes)
{
    return !cuda_result(gpu->device.driver->cuMemcpyHtoDAsync(to, from, bytes, gpu->stream),
                        "cuMemcpyHtoDAsync") &&
           through(gpu);
}

bool gpu_download(struct gpu *gpu, void *to, CUdeviceptr from, size_t bytes)
{
    return !cuda_result(gpu->device.driver->cuMemcpyDtoHAsync(to, from, bytes, gpu->stream),
                        "cuMemcpyDtoHAsync") &&
           through(gpu);
}
