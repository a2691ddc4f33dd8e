/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - bodies of tests that run under Criterion and, for ThreadSanitizer, in a plain program.
 *
 * A body notes the first thing that is not as it should be, and goes on; it may be called again and
 * again in one process, so it leaves nothing behind.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct check {
    const char *file, *what; /* NULL: all well so far */
    int line;
    long got;
};

typedef void check_body(struct check *check);

/* The condition holds. */
#define CHECK(condition) check_note(check, (condition), 0, #condition, __FILE__, __LINE__)

/* The call gives CUDA_SUCCESS, or the other result. */
#define CHECK_OK(call) CHECK_GIVES(call, CUDA_SUCCESS)
#define CHECK_GIVES(call, result) \
    check_result(check, (call), (result), #call " gives " #result, __FILE__, __LINE__)

void check_note(struct check *check, bool good, long got, const char *what, const char *file,
                int line);
void check_result(struct check *check, CUresult got, CUresult wanted, const char *what,
                  const char *file, int line);

/* The driver with the device's primary context as the current one of this thread; check_end() gives
 * it back, and all that was made in it goes. */
CUcontext check_begin(struct check *check, CUdevice device);
void check_end(struct check *check, CUdevice device);

/* A stream that does not wait for the legacy one; device memory of zeros; a word of pinned host
 * memory that is 0. */
CUstream check_stream(struct check *check);
CUdeviceptr check_memory(struct check *check, size_t size);
unsigned *check_word(struct check *check);

/* The word at the address on the device, by a synchronous copy. */
unsigned check_read(struct check *check, CUdeviceptr address);

/* Lets go of streams that wait for the word to become `value`. */
void check_release(unsigned *word, unsigned value);

static inline CUdeviceptr check_address(const void *bytes)
{
    return (CUdeviceptr)(size_t)bytes;
}

/* The image of example.cu: CUDA_STANDIN_EXAMPLE says where it is. */
CUmodule check_module(struct check *check);
CUfunction check_kernel(struct check *check, CUmodule module, const char *name);
