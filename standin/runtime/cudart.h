/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudart.h - what the files of the runtime's stand-in share.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Each function begins with this: the driver is initialised, and this thread has a context, by
 * default the primary one of its device (cudaSetDevice()). */
cudaError_t runtime_enter(void);

/* Notes the result as this thread's last error, unless it is none, and gives it back. The numbers
 * of both interfaces are the same. */
cudaError_t runtime_result(CUresult result);

/* The context is about to end, and what it loaded with it. */
void runtime_forget_kernels(CUcontext context);

static inline CUdeviceptr runtime_address(const void *bytes)
{
    return (CUdeviceptr)(size_t)bytes;
}
