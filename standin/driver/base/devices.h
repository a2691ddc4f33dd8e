/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.h - the made-up GPUs: how many, what they can hold and run. (device.h is for kernels.)
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    DEVICE_LIMIT = 16,
    DEVICE_MULTIPROCESSORS = 10, /* with their blocks, enough for 8 ranks of 5 programs */
    DEVICE_BLOCKS_EACH = 4,      /* blocks that a multiprocessor runs at a time */
    DEVICE_STACK = 1024,         /* bytes of a lane, until somebody sets another limit */
    DEVICE_SHARED_BYTES = 228 * 1024,
    DEVICE_SHARED_BYTES_BLOCK = 227 * 1024,
};

void device_init(void);
int device_count(void);
bool device_exists(CUdevice device);
/* Returns its number, the same in all processes whatever CUDA_VISIBLE_DEVICES says; -1: there is no
 * such device. */
int device_number(CUdevice device);

/* The multiprocessors that this process may use: all, or so many percent of them, rounded up, as
 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE says (above 0, up to 100). */
unsigned device_multiprocessors(void);

/* Bytes of memory of each device. */
size_t device_memory(void);

/* True if the first device may reach the second one's memory. */
bool device_reaches(CUdevice device, CUdevice other);
