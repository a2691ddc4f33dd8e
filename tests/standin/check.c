/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.c - what bodies of tests have in common.
 */
#include "tests/standin/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void check_note(struct check *check, bool good, long got, const char *what, const char *file,
                int line)
{
    if (!good && !check->what)
        *check = (struct check){file, what, line, got};
}

void check_result(struct check *check, CUresult got, CUresult wanted, const char *what,
                  const char *file, int line)
{
    check_note(check, got == wanted, (long)got, what, file, line);
}

CUcontext check_begin(struct check *check, CUdevice device)
{
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK_OK(cuCtxSetCurrent(context));
    return context;
}

void check_end(struct check *check, CUdevice device)
{
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuCtxSetCurrent(NULL));
    CHECK_OK(cuDevicePrimaryCtxRelease(device));
}

CUstream check_stream(struct check *check)
{
    CUstream stream = NULL;
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUdeviceptr check_memory(struct check *check, size_t size)
{
    CUdeviceptr memory = 0;
    CHECK_OK(cuMemAlloc(&memory, size));
    CHECK_OK(cuMemsetD8(memory, 0, size));
    return memory;
}

unsigned *check_word(struct check *check)
{
    void *word = NULL;
    CHECK_OK(cuMemHostAlloc(&word, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    return word;
}

unsigned check_read(struct check *check, CUdeviceptr address)
{
    unsigned word = 0;
    CHECK_OK(cuMemcpyDtoH(&word, address, sizeof word));
    return word;
}

void check_release(unsigned *word, unsigned value)
{
    /* Release, pairs with the acquire of the stream that waits. */
    atomic_store_explicit((_Atomic unsigned *)(void *)word, value, memory_order_release);
}

CUmodule check_module(struct check *check)
{
    const char *path = getenv("CUDA_STANDIN_EXAMPLE");
    static char image[4 << 20];
    FILE *file = path ? fopen(path, "rb") : NULL;
    size_t length = file ? fread(image, 1, sizeof image, file) : 0;
    CHECK(length > 0 && length < sizeof image);
    if (file)
        fclose(file);
    CUmodule module = NULL;
    CHECK_OK(cuModuleLoadData(&module, image));
    return module;
}

CUfunction check_kernel(struct check *check, CUmodule module, const char *name)
{
    CUfunction kernel = NULL;
    CHECK_OK(cuModuleGetFunction(&kernel, module, name));
    return kernel;
}
