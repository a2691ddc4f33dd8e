/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/stock.h"

#include "base/caller/times.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { GRAIN = 512, VERY_LARGE = 64 << 20 }; /* bytes */

struct cuda_holding {
    struct cuda_holding *next;
    enum cuda_holding_kind kind;
    size_t bytes;
    CUdeviceptr memory;
    bool taken;
};

/* ---- Calls on their way ---------------------------------------------------------------------- */

static _Atomic int inflights;
static struct lock_shared queueing = LOCK_SHARED_AT(LOCK_GPU_QUEUEING); /* readers queue calls */
FORK_RENEWS({.shared = &queueing});
static _Thread_local bool this_queues; /* this thread is a reader */

void cuda_count_inflights(int more)
{
    /* Release, pairs with the acquire below: who finds none, finds what they did. */
    atomic_fetch_add_explicit(&inflights, more, memory_order_release);
}

bool cuda_has_inflights(void)
{
    return atomic_load_explicit(&inflights, memory_order_acquire);
}

void cuda_queueing_begin(void)
{
    lock_shared_read(&queueing);
    this_queues = true;
}

void cuda_queueing_end(void)
{
    this_queues = false;
    lock_shared_give(&queueing);
}

bool cuda_idle_begin(void)
{
    if (!lock_shared_try(&queueing))
        return false;
    if (!cuda_has_inflights())
        return true;
    lock_shared_give(&queueing);
    return false;
}

void cuda_idle_end(void)
{
    lock_shared_give(&queueing);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

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

/* Frees what nobody has taken, if it has at least so many bytes. The lock is not held meanwhile, as
 * the driver may wait. */
static void free_unused(struct cuda_stock *stock, const struct cuda_device *device, size_t least)
{
    struct cuda_holding **at = &stock->holdings, *unused = NULL;

    lock_take(&stock->lock);
    while (*at) {
        struct cuda_holding *it = *at;

        if (it->taken || it->bytes < least) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        it->next = unused;
        unused = it;
    }
    lock_give(&stock->lock);
    while (unused) {
        struct cuda_holding *it = unused;

        unused = it->next;
        release(device, it);
    }
}

static bool has_unused(struct cuda_stock *stock)
{
    bool unused = false;

    lock_take(&stock->lock);
    for (const struct cuda_holding *it = stock->holdings; it; it = it->next)
        unused |= !it->taken;
    lock_give(&stock->lock);
    return unused;
}

/* Frees what nobody has taken, once no call is on its way for which that would wait; false if it
 * takes long, as one of them may wait for what this thread does next. Where this thread queues a
 * call itself, nothing of that waits yet. */
static bool free_when_idle(struct cuda_stock *stock, const struct cuda_device *device)
{
    double began = clock_seconds();
    bool queues = this_queues, idle;

    if (queues)
        cuda_queueing_end();
    while (!(idle = cuda_idle_begin()) && clock_seconds() - began < PATIENCE_FREE)
        doze_for(DOZE_OWN);
    if (idle) {
        free_unused(stock, device, 0);
        cuda_idle_end();
    }
    if (queues)
        cuda_queueing_begin();
    return idle;
}

static rondo_result add(struct cuda_stock *stock, const struct cuda_device *device,
                        enum cuda_holding_kind kind, size_t bytes, CUdeviceptr *ret_memory)
{
    struct cuda_holding *holding = calloc(1, sizeof(*holding));
    rondo_result result;

    if (!holding)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a list of memory on a device.");
    holding->kind = kind;
    holding->bytes = bytes;
    holding->taken = true;
    result = allocate(device, holding);
    if (result && has_unused(stock) && free_when_idle(stock, device)) /* it may be missing */
        result = allocate(device, holding);
    if (result) {
        free(holding);
        return result;
    }
    *ret_memory = holding->memory;
    lock_take(&stock->lock);
    holding->next = stock->holdings;
    stock->holdings = holding;
    lock_give(&stock->lock);
    return RONDO_OK;
}

rondo_result cuda_stock_take(struct cuda_stock *stock, const struct cuda_device *device,
                             enum cuda_holding_kind kind, size_t bytes, CUdeviceptr *ret_memory)
{
    size_t rounded = bytes ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
    struct cuda_holding *holding;

    *ret_memory = 0;
    lock_take(&stock->lock);
    holding = find(stock, kind, rounded);
    if (holding) {
        holding->taken = true;
        *ret_memory = holding->memory;
    }
    lock_give(&stock->lock);
    return holding ? RONDO_OK : add(stock, device, kind, rounded, ret_memory);
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
    struct cuda_holding **at;

    lock_take(&stock->lock);
    at = memory ? place_of(stock, memory) : NULL;
    if (at)
        (*at)->taken = false;
    lock_give(&stock->lock);
    if (!cuda_idle_begin())
        return;
    free_unused(stock, device, VERY_LARGE);
    cuda_idle_end();
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
    free_unused(stock, device, 0);
}
