/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - a rank's CUDA device, its stream and its memory; all of it fails without a driver. */
#ifndef RONDO_TESTS_FAILURE_DEVICE_H
#define RONDO_TESTS_FAILURE_DEVICE_H

#include "soak.h"

/* The rank gets the device of its number modulo how many there are; it becomes current here. */
bool soak_device_open(int rank, struct soak_device *ret_device);
void soak_device_close(struct soak_device *device); /* accepts one that is all 0 */

/* Stop this process; on a device, what had begun there comes to its end. */
void soak_device_stop(void);

/* Takes memory of MEMORY_CUDA or MEMORY_CUDA_SHARED; NULL: there is none. */
void *soak_device_alloc(enum soak_memory kind, size_t bytes);
void soak_device_free(enum soak_memory kind, void *memory);
/* Between the device and the host, after all work on it. */
bool soak_device_copy(void *to, const void *from, size_t bytes);

#endif
