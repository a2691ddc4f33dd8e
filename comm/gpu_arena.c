/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_arena.c - pinned memory of the host that several ranks of a process use: ranks that are
 * threads have the same arenas mapped at the same place, and CUDA pins a place once.
 */
#include "comm/gpu_arena.h"

#include "base/fail.h"

#include <stdlib.h>

struct pin {
    struct pin *next;
    void *memory;
    size_t bytes;
    CUdeviceptr device;
    int users;
};

static struct pin *pins;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct pin *find(const void *memory)
{
    struct pin *pin = pins;

    while (pin && pin->memory != memory)
        pin = pin->next;
    return pin;
}

static rondo_result make(const struct cuda_driver *driver, void *memory, size_t bytes,
                         struct pin **ret_pin)
{
    struct pin *pin = calloc(1, sizeof(*pin));
    rondo_result result;

    if (!pin)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while pinning memory.");
    result =
        cuda_result(driver->cuMemHostRegister(
                        memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
                    "cuMemHostRegister");
    if (!result) {
        result = cuda_result(driver->cuMemHostGetDevicePointer(&pin->device, memory, 0),
                             "cuMemHostGetDevicePointer");
        if (result)
            driver->cuMemHostUnregister(memory);
    }
    if (result) {
        free(pin);
        return result;
    }
    pin->memory = memory;
    pin->bytes = bytes;
    pin->next = pins;
    pins = *ret_pin = pin;
    return RONDO_OK;
}

rondo_result gpu_pin(const struct cuda_driver *driver, void *memory, size_t bytes,
                     CUdeviceptr *ret_device)
{
    rondo_result result = RONDO_OK;
    struct pin *pin;

    pthread_mutex_lock(&lock);
    pin = find(memory);
    if (!pin)
        result = make(driver, memory, bytes, &pin);
    if (!result) {
        pin->users++;
        *ret_device = pin->device;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void gpu_unpin(const struct cuda_driver *driver, void *memory)
{
    struct pin **link = &pins;
    struct pin *pin;

    pthread_mutex_lock(&lock);
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    pin = *link;
    if (pin && --pin->users == 0) {
        *link = pin->next;
        driver->cuMemHostUnregister(memory);
        free(pin);
    }
    pthread_mutex_unlock(&lock);
}
