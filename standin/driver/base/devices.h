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
    DEVICE_SHARED_BYTES = 228 * 1024,
    DEVICE_SHARED_BYTES_BLOCK = 227 * 1024,
};

void device_init(void);
int device_count(void);
bool device_exists(CUdevice device);

/* Bytes of memory of each device. */
size_t device_memory(void);

/* May the first device reach the second one's memory? */
bool device_reaches(CUdevice device, CUdevice other);
