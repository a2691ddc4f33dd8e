/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.h - a device, a stream and our kernels for a test, and memory on them. */
#ifndef RONDO_TESTS_CUDA_GPU_H
#define RONDO_TESTS_CUDA_GPU_H

#include "cuda/module.h"

struct gpu {
    struct cuda_device device;
    struct cuda_launcher *launcher;
    CUstream stream;
};

/* Device 0 becomes current on the calling thread. False: the sentence is in fail_sentence(). */
bool gpu_open(struct gpu *gpu);
void gpu_close(struct gpu *gpu);

CUdeviceptr gpu_alloc(struct gpu *gpu, size_t bytes); /* 0: there is none */
void gpu_free(struct gpu *gpu, CUdeviceptr memory);
/* Both wait until the stream is through with it; false: something queued there has failed. */
bool gpu_upload(struct gpu *gpu, CUdeviceptr to, const void *from, size_t bytes);
bool gpu_download(struct gpu *gpu, void *to, CUdeviceptr from, size_t bytes);

#endif
