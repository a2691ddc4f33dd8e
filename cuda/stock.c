/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/stock.h"

#include "base/fail.h"

#include <stdlib.h>

enum { GRAIN = 512, VERY_LARGE = 64 << 20 }; /* bytes */

struct cuda_holding {
    struct cuda_holding *next;
    enum cuda_holding_kind kind;
    size_t bytes;
    CUdeviceptr memory;
    bool taken;
};

static void release(const struct cuda_device *device, struct cuda_holding *holding)
{
    if (holding->kind == CUDA_HOLDING_PINNED)
        device->driver->cuMemFreeHost((void *)(uintptr_t)holding->memory);
    else
        device->driver->cuMemFree(holding->memory);
    free(holding);
}

static rondo_result allocate(const struct cuda_device *device, struct cuda_holding *holding)
{
    const struct cuda_driver *driver = device->driver;
    void *memory = NULL;
    rondo_result result;

    if (holding->kind == CUDA_HOLDING_DEVICE)
        return cuda_result(driver->cuMemAlloc(&holding->memory, holding->bytes), "cuMemAlloc");
    result =
        cuda_result(driver->cuMemHostAlloc(&memory, holding->bytes,
                                           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                    "cuMemHostAlloc");
    holding->memory = cuda_address(memory);
    return result;
}

/* With the lock held. The smallest that fits and is not much too large; NULL: there is none. */
static struct cuda_holding *find(const struct cuda_stock *stock, enum cuda_holding_kind kind,
                                 size_t bytes)
{
    struct cuda_holding *best = NULL;

    for (struct cuda_holding *it = stock->holdings; it; it = it->next)
        if (!it->taken && it->kind == kind && it->bytes >= bytes && it->bytes <= 2 * bytes &&
            (!best || it->bytes < best->bytes))
            best = it;
    return best;
}

/* With the lock held. */
static void clear(struct cuda_stock *stock, const struct cuda_device *device)
{
    struct cuda_holding **at = &stock->holdings;

    while (*at) {
        struct cuda_holding *it = *at;

        if (it->taken) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        release(device, it);
    }
}

/* With the lock held. */
static rondo_result add(struct cuda_stock *stock, const struct cuda_device *device,
                        enum cuda_holding_kind kind, size_t bytes, struct cuda_holding **ret)
{
    struct cuda_holding *holding = calloc(1, sizeof(*holding));
    rondo_result result;

    if (!holding)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a list of memory on a device.");
    holding->kind = kind;
    holding->bytes = bytes;
    result = allocate(device, holding);
    if (result) {
        clear(stock, device); /* what lies there may be what is missing */
        result = allocate(device, holding);
    }
    if (result) {
        free(holding);
        return result;
    }
    holding->next = stock->holdings;
    stock->holdings = *ret = holding;
    return RONDO_OK;
}

rondo_result cuda_stock_take(struct cuda_stock *stock, const struct cuda_device *device,
                             enum cuda_holding_kind kind, size_t bytes, CUdeviceptr *ret_memory)
{
    size_t rounded = bytes ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
    struct cuda_holding *holding;
    rondo_result result = RONDO_OK;

    *ret_memory = 0;
    lock_take(&stock->lock);
    holding = find(stock, kind, rounded);
    if (!holding)
        result = add(stock, device, kind, rounded, &holding);
    if (!result) {
        holding->taken = true;
        *ret_memory = holding->memory;
    }
    lock_give(&stock->lock);
    return result;
}

/* With the lock held. Where the list points to that memory; NULL: it is not on it. */
static struct cuda_holding **place_of(struct cuda_stock *stock, CUdeviceptr memory)
{
    struct cuda_holding **at = &stock->holdings;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    return *at ? at : NULL;
}

void cuda_stock_return(struct cuda_stock *stock, const struct cuda_device *device,
                       CUdeviceptr memory)
{
    struct cuda_holding **at, *gone = NULL;

    lock_take(&stock->lock);
    at = memory ? place_of(stock, memory) : NULL;
    if (at) {
        (*at)->taken = false;
        gone = (*at)->bytes >= VERY_LARGE ? *at : NULL;
    }
    if (gone)
        *at = gone->next;
    lock_give(&stock->lock);
    if (gone)
        release(device, gone);
}

void cuda_stock_forget(struct cuda_stock *stock, CUdeviceptr memory)
{
    struct cuda_holding **at, *gone = NULL;

    lock_take(&stock->lock);
    at = place_of(stock, memory);
    if (at) {
        gone = *at;
        *at = gone->next;
    }
    lock_give(&stock->lock);
    free(gone);
}

void cuda_stock_clear(struct cuda_stock *stock, const struct cuda_device *device)
{
    lock_take(&stock->lock);
    clear(stock, device);
    lock_give(&stock->lock);
}
