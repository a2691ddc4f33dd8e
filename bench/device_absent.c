/* SPDX-License-Identifier: BSD-3-Clause */
/* device_absent.c - stands in for device.c where the CUDA toolkit was not installed. */
#include "bench/device.h"

#include <stdio.h>

struct device *device_open(int local_rank, char *sentence, size_t room)
{
    (void)local_rank;
    snprintf(sentence, room,
             "this Rondo was built without CUDA: install the CUDA toolkit and build again");
    return NULL;
}

void device_close(struct device *device)
{
    (void)device;
}

/* There is no device, so nobody has one to call these with. */

int device_number(const struct device *device)
{
    return -1;
}

int device_count(const struct device *device)
{
    return 0;
}

size_t device_bytes(const struct device *device)
{
    return 0;
}

const char *device_error(const struct device *device)
{
    return "there is no device";
}

void *device_alloc(struct device *device, size_t bytes)
{
    return NULL;
}

void device_free(struct device *device, void *memory)
{
}

int device_clear(struct device *device, void *memory, size_t bytes)
{
    return -1;
}

int device_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    return -1;
}

void *device_stream(const struct device *device)
{
    return NULL;
}

int device_wait(struct device *device)
{
    return -1;
}

int device_queue_copy(struct device *device, void *to, const void *from, size_t bytes)
{
    return -1;
}

int device_queue_nothing(struct device *device)
{
    return -1;
}

int device_record_begin(struct device *device)
{
    return -1;
}

int device_record_end(struct device *device)
{
    return -1;
}

int device_replay(struct device *device)
{
    return -1;
}
