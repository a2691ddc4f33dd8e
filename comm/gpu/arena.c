/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c - pinned memory of the host that several ranks of a process use: ranks that are
 * threads have the same arenas mapped at the same place, and CUDA pins a place once.
 *
 * What a peer gave back when it closed a communicator it may have used again for another, while we
 * have the first one open still. Its pages are others then, so what was pinned is pinned anew.
 */
#include "comm/gpu/arena.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"

#include <stdlib.h>

struct pin {
    struct pin *next;
    char *memory;
    size_t bytes;
    uint64_t comm; /* whose memory it is */
    CUdeviceptr device;
    int users;
    bool gone; /* not pinned any more: the place is another communicator's */
};

static struct pin *pins;
static struct lock lock = LOCK_AT(LOCK_GPU_PINS);
FORK_RENEWS({.lock = &lock});

/* Finds the pointer of the list that leads to the pin; it is NULL if there is none. */
static struct pin **place_of(const void *memory, uint64_t comm)
{
    struct pin **at = &pins;

    while (*at && ((*at)->memory != memory || (*at)->comm != comm))
        at = &(*at)->next;
    return at;
}

static void forget_others(const struct cuda_driver *driver, const char *memory, size_t bytes,
                          uint64_t comm)
{
    for (struct pin *pin = pins; pin; pin = pin->next)
        if (!pin->gone && pin->comm != comm && pin->memory < memory + bytes &&
            memory < pin->memory + pin->bytes) {
            driver->cuMemHostUnregister(pin->memory);
            pin->gone = true;
        }
}

static rondo_result make(const struct cuda_driver *driver, const struct gpu_pages *pages,
                         struct pin **ret_pin)
{
    struct pin *pin = calloc(1, sizeof(*pin));
    rondo_result result;

    if (!pin)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while pinning memory.");
    result = cuda_result(
        driver->cuMemHostRegister(pages->memory, pages->bytes,
                                  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
        "cuMemHostRegister");
    if (!result) {
        result = cuda_result(driver->cuMemHostGetDevicePointer(&pin->device, pages->memory, 0),
                             "cuMemHostGetDevicePointer");
        if (result)
            driver->cuMemHostUnregister(pages->memory);
    }
    if (result) {
        free(pin);
        return result;
    }
    pin->memory = pages->memory;
    pin->bytes = pages->bytes;
    pin->comm = pages->comm;
    pin->next = pins;
    pins = *ret_pin = pin;
    return RONDO_OK;
}

rondo_result gpu_pin(const struct cuda_driver *driver, const struct gpu_pages *pages,
                     CUdeviceptr *ret_device)
{
    rondo_result result = RONDO_OK;
    struct pin *pin;

    lock_take(&lock);
    pin = *place_of(pages->memory, pages->comm);
    if (!pin) {
        forget_others(driver, pages->memory, pages->bytes, pages->comm);
        result = make(driver, pages, &pin);
    }
    if (!result) {
        pin->users++;
        *ret_device = pin->device;
    }
    lock_give(&lock);
    return result;
}

void gpu_unpin(const struct cuda_driver *driver, const void *memory, uint64_t comm)
{
    struct pin **link;
    struct pin *pin;

    lock_take(&lock);
    link = place_of(memory, comm);
    pin = *link;
    if (pin && --pin->users == 0) {
        *link = pin->next;
        if (!pin->gone)
            driver->cuMemHostUnregister(pin->memory);
        free(pin);
    }
    lock_give(&lock);
}
