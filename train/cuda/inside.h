/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inside.h - what the files of this folder share.
 *
 * Layers return nothing, as on the host. So the first call of the driver that fails is kept, with
 * its sentence, and what comes after is left out; whoever asks for a result gets it.
 */
#ifndef RONDO_TRAIN_CUDA_INSIDE_H
#define RONDO_TRAIN_CUDA_INSIDE_H

#include "train/cuda/calls.h"
#include "train/cuda/gpu.h"
#include "train/cuda/library.h"

enum gpu_kernel {
#define GPU_KERNEL(name) GPU_##name,
    TRAIN_KERNELS(GPU_KERNEL)
#undef GPU_KERNEL
        GPU_KERNELS
};

/* Memory of the device that is kept for the next use, and grows when that needs more. */
struct gpu_room {
    void *memory;
    size_t bytes;
};
enum { GPU_SUMS, GPU_LOSSES, GPU_SQUARES, GPU_ROOMS };

/* Kernels leave this for the host. */
struct gpu_news {
    struct train_worth worth;
    double root;
};

struct gpu {
    CUdevice device;
    CUcontext context;
    CUstream passes, exchanges;
    CUmodule module;
    CUfunction kernels[GPU_KERNELS];
    unsigned lanes, blocks; /* most of a block, and most blocks that are worth starting */
    cublasHandle_t cublas;
    struct gpu_room rooms[GPU_ROOMS];
    struct gpu_news *news, *device_news; /* pinned; where kernels write */
    struct loss *wanted;                 /* to be filled from the news, or NULL */
    rondo_result result;                 /* of the first call that failed */
    char sentence[256];
};
extern struct gpu gpu;

/* After each call; true: it was good, and all before it. */
bool gpu_note(CUresult code, const char *call);
bool gpu_note_cublas(cublasStatus_t status, const char *call);
/* Said, if something has failed. */
rondo_result gpu_outcome(void);
/* Wait for the passes: the news are there then. */
rondo_result gpu_wait(void);

/* At least so much memory; NULL after a failure. What was there before may be gone. */
void *gpu_room(int room, size_t bytes);
/* Queue the copy of a part of the news, which begins at `part` of the device's. */
void gpu_bring(const void *part, size_t bytes);

/* Queue a kernel: with a block per row of so many elements, with a lane per element, or with so
 * many blocks. Where there are no rows or elements, nothing is done. */
void gpu_launch_rows(enum gpu_kernel kernel, uint64_t rows, int width, const void *call);
void gpu_launch_elements(enum gpu_kernel kernel, uint64_t count, const void *call);
void gpu_launch_blocks(enum gpu_kernel kernel, unsigned blocks, const void *call);

/* exchange.c */
void gpu_marks_close(void);

static inline CUdeviceptr gpu_address(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

#endif
