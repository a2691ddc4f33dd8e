/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - the cache of registrations: an interval tree, and a ring of what is idle. */
#include "transport/verbs/memory.h"

#include "base/fail.h"
#include "transport/memory/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { IDLE_MOST = 256 << 20 };

void verbs_memory_init(struct verbs_memory *memory, const struct verbs_calls *calls,
                       struct ibv_pd *pd, const char *device)
{
    *memory =
        (struct verbs_memory){.calls = calls, .pd = pd, .device = device, .idle_most = IDLE_MOST};
    memory->idle.previous = memory->idle.next = &memory->idle;
    lock_init(&memory->lock, LOCK_VERBS_MEMORY);
}

/* ---- With the lock held ---------------------------------------------------------------------- */

static size_t length(const struct verbs_region *region)
{
    return region->range.end - region->range.begin;
}

static void leave_idle(struct verbs_memory *memory, struct verbs_region *region)
{
    region->previous->next = region->next;
    region->next->previous = region->previous;
    memory->idle_bytes -= length(region);
}

static void enter_idle(struct verbs_memory *memory, struct verbs_region *region)
{
    region->next = &memory->idle;
    region->previous = memory->idle.previous;
    region->previous->next = region->next->previous = region;
    memory->idle_bytes += length(region);
}

static void destroy(struct verbs_memory *memory, struct verbs_region *region)
{
    memory->calls->dereg_mr(region->mr);
    free(region);
}

/* Deregister what has been idle longest; false: nothing is idle. */
static bool evict(struct verbs_memory *memory)
{
    struct verbs_region *oldest = memory->idle.next;

    if (oldest == &memory->idle)
        return false;
    leave_idle(memory, oldest);
    intervals_remove(&memory->regions, &oldest->range);
    destroy(memory, oldest);
    return true;
}

static bool allows(const struct interval *range, const void *context)
{
    const struct verbs_region *region = (const struct verbs_region *)(const void *)range;

    /* The same, not more: relaxed ordering is no right that may be had in excess. */
    return region->access == *(const int *)context;
}

static rondo_result refuse(const struct verbs_memory *memory, size_t bytes)
{
    int error = errno;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    char hint[160] = "the adapter or the system has no room for more";

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY)
        snprintf(hint, sizeof(hint),
                 "locked memory is limited to %llu KiB (`ulimit -l unlimited` before the start, or "
                 "LimitMEMLOCK of the service)",
                 (unsigned long long)limit.rlim_cur / 1024);
    return rondo_fail(RONDO_ERROR_MEMORY,
                      "Cannot register %zu bytes with %s: %s; %s. Smaller RONDO_SLOTS or "
                      "RONDO_SLOT_BYTES need less, RONDO_TRANSPORT=tcp needs none.",
                      bytes, memory->device, strerror(error), hint);
}

static struct ibv_mr *register_range(struct verbs_memory *memory, uint64_t begin, size_t bytes,
                                     int access)
{
    const struct verbs_calls *calls = memory->calls;
    void *at = (void *)(uintptr_t)begin;

    if (access & IBV_ACCESS_OPTIONAL_RANGE) {
        /* Optional rights such as relaxed ordering: this function leaves out what the kernel does
         * not know, the older one refuses. */
        if (calls->reg_mr_iova2)
            return calls->reg_mr_iova2(memory->pd, at, bytes, begin, (unsigned)access);
        access &= ~(int)IBV_ACCESS_OPTIONAL_RANGE;
    }
    return calls->reg_mr(memory->pd, at, bytes, access);
}

static rondo_result make(struct verbs_memory *memory, uint64_t begin, uint64_t end, int access,
                         struct verbs_region **ret_region)
{
    struct verbs_region *region = calloc(1, sizeof(*region));

    if (!region)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a registration.");
    do {
        errno = ENOMEM;
        region->mr = register_range(memory, begin, end - begin, access);
    } while (!region->mr && evict(memory));
    if (!region->mr) {
        rondo_result result = refuse(memory, end - begin);

        free(region);
        return result;
    }
    region->range.begin = begin;
    region->range.end = end;
    region->access = access;
    region->users = 1;
    memory->made++;
    intervals_add(&memory->regions, &region->range);
    *ret_region = region;
    return RONDO_OK;
}

static struct verbs_region *find(struct verbs_memory *memory, uint64_t begin, uint64_t end,
                                 int access)
{
    struct verbs_region *region = (struct verbs_region *)(void *)intervals_holding(
        &memory->regions, begin, end, allows, &access);

    if (region && region->users++ == 0)
        leave_idle(memory, region);
    return region;
}

/* ---- The interface --------------------------------------------------------------------------- */

struct verbs_region *verbs_memory_find(struct verbs_memory *memory, const void *at, size_t bytes,
                                       int access)
{
    uint64_t begin = (uintptr_t)at;
    struct verbs_region *region;

    lock_take(&memory->lock);
    region = find(memory, begin, begin + bytes, access);
    lock_give(&memory->lock);
    return region;
}

rondo_result verbs_memory_get(struct verbs_memory *memory, void *at, size_t bytes, int access,
                              struct verbs_region **ret_region)
{
    uint64_t begin = (uintptr_t)at / PAGE * PAGE;
    uint64_t end = ((uintptr_t)at + bytes + PAGE - 1) / PAGE * PAGE;
    rondo_result result = RONDO_OK;
    struct verbs_region *region;

    lock_take(&memory->lock);
    region = find(memory, begin, end, access);
    if (!region)
        result = make(memory, begin, end, access, &region);
    lock_give(&memory->lock);
    if (!result)
        *ret_region = region;
    return result;
}

void verbs_memory_put(struct verbs_memory *memory, struct verbs_region *region)
{
    if (!region)
        return;
    lock_take(&memory->lock);
    if (--region->users == 0) {
        if (region->forgotten)
            destroy(memory, region);
        else
            enter_idle(memory, region);
        while (memory->idle_bytes > memory->idle_most)
            evict(memory);
    }
    lock_give(&memory->lock);
}

void verbs_memory_forget(struct verbs_memory *memory, const void *at, size_t bytes)
{
    uint64_t begin = (uintptr_t)at;
    struct interval *range;

    lock_take(&memory->lock);
    while ((range = intervals_touching(&memory->regions, begin, begin + bytes))) {
        struct verbs_region *region = (struct verbs_region *)(void *)range;

        intervals_remove(&memory->regions, range);
        region->forgotten = true;
        if (region->users == 0) {
            leave_idle(memory, region);
            destroy(memory, region);
        }
    }
    lock_give(&memory->lock);
}

void verbs_memory_done(struct verbs_memory *memory)
{
    while (evict(memory))
        continue;
    lock_done(&memory->lock);
}
