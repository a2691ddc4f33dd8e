/* SPDX-License-Identifier: BSD-3-Clause */
/* device_absent.c - what a build without CUDA has instead of device.c. */
#include "device.h"

bool soak_device_open(int rank, struct soak_device *ret_device)
{
    (void)rank;
    (void)ret_device;
    return false;
}

void soak_device_close(struct soak_device *device)
{
    (void)device;
}

void soak_device_stop(void)
{
}

void *soak_device_alloc(enum soak_memory kind, size_t bytes)
{
    (void)kind;
    (void)bytes;
    return NULL;
}

void soak_device_free(enum soak_memory kind, void *memory)
{
    (void)kind;
    (void)memory;
}

bool soak_device_copy(void *to, const void *from, size_t bytes)
{
    (void)to;
    (void)from;
    (void)bytes;
    return false;
}
