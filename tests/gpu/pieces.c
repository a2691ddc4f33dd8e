/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces.c - memory of CUDA's virtual memory management: a range of addresses, with a piece of
 * physical memory behind the other. */
#include "device.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct range {
    struct range *next;
    CUdeviceptr base;
    size_t bytes, each, mapped;
};

static struct range *ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool add_piece(struct range *range, const CUmemAllocationProp *properties)
{
    const struct device_driver *cuda = device_driver();
    CUmemAccessDesc access = {.location = properties->location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUresult code = cuda->cuMemCreate(&handle, range->each, properties, 0);

    if (code)
        return false;
    code = cuda->cuMemMap(range->base + range->mapped, range->each, 0, handle, 0);
    cuda->cuMemRelease(handle);
    if (code)
        return false;
    range->mapped += range->each;
    return !cuda->cuMemSetAccess(range->base + range->mapped - range->each, range->each, &access,
                                 1);
}

static void discard(struct range *range)
{
    const struct device_driver *cuda = device_driver();

    for (size_t at = 0; at < range->mapped; at += range->each)
        cuda->cuMemUnmap(range->base + at, range->each);
    if (range->base)
        cuda->cuMemAddressFree(range->base, range->bytes);
    free(range);
}

void *pieces_alloc(size_t bytes, bool shared)
{
    const struct device_driver *cuda = device_driver();
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    struct range *range = calloc(1, sizeof(*range));
    CUdevice device = 0;
    bool good = range && !cuda->cuCtxGetDevice(&device);

    properties.location.id = device;
    if (shared)
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    good = good && !cuda->cuMemGetAllocationGranularity(&range->each, &properties,
                                                        CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (good)
        range->bytes = (bytes + range->each - 1) / range->each * range->each;
    good = good && !cuda->cuMemAddressReserve(&range->base, range->bytes, 0, 0, 0);
    while (good && range->mapped < range->bytes)
        good = add_piece(range, &properties);
    if (!good) {
        if (range)
            discard(range);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)range->base;
}

void pieces_free(void *memory)
{
    struct range **at = &ranges, *range;

    pthread_mutex_lock(&lock);
    while (*at && (*at)->base != (CUdeviceptr)(uintptr_t)memory)
        at = &(*at)->next;
    range = *at;
    if (range)
        *at = range->next;
    pthread_mutex_unlock(&lock);
    if (range)
        discard(range);
}
