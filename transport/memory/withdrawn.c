/* SPDX-License-Identifier: BSD-3-Clause */
/* withdrawn.c - the list of withdrawn ranges, and the exchange of their pages. */
#include "transport/memory/withdrawn.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "transport/memory/page.h"

#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct range {
    struct range *next;
    const char *begin, *end; /* whole pages */
    bool exchanged;
    struct lease *lease;
};

atomic_uint withdrawn_count;
static struct range *ranges;
static struct lock_shared ranges_lock = LOCK_SHARED_AT(LOCK_WITHDRAWN);
FORK_RENEWS({.shared = &ranges_lock});

bool withdrawn_search(const void *memory, size_t bytes)
{
    const char *at = memory;
    const struct range *range;

    lock_shared_read(&ranges_lock);
    range = ranges;
    while (range && !(at < range->end && range->begin < at + (bytes ? bytes : 1)))
        range = range->next;
    lock_shared_give(&ranges_lock);
    return range;
}

rondo_result withdrawn_note(char *begin, char *end, struct lease *lease)
{
    struct range *range = malloc(sizeof(*range));

    if (!range)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while taking memory back from peers.");
    lock_shared_write(&ranges_lock);
    *range = (struct range){.next = ranges, .begin = begin, .end = end, .lease = lease};
    ranges = range;
    /* Sequentially consistent, pairs with the fence in exposure_open(): either who announces memory
     * to peers finds it here, or who withdraws it finds the exposure. */
    atomic_fetch_add_explicit(&withdrawn_count, 1, memory_order_seq_cst);
    lock_shared_give(&ranges_lock);
    atomic_thread_fence(memory_order_seq_cst);
    return RONDO_OK;
}

/* With the lock: was this page exchanged before? */
static bool is_private(const char *page)
{
    const struct range *range = ranges;

    while (range && !(range->exchanged && page >= range->begin && page < range->end))
        range = range->next;
    return range;
}

static rondo_result exchange(char *begin, size_t bytes, int fd, uint64_t offset)
{
    if (mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
             (off_t)offset) == MAP_FAILED)
        return rondo_fail_errno(RONDO_ERROR_MEMORY,
                                "Cannot take %zu bytes of memory back from peers", bytes);
    if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0)
        return RONDO_OK;
    /* Kernels before 5.14: a store that changes nothing makes a page private as well. */
    for (char *at = begin; at < begin + bytes; at += PAGE)
        __atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
    return RONDO_OK;
}

rondo_result withdrawn_exchange(char *begin, char *end, int fd, uint64_t offset)
{
    rondo_result result = RONDO_OK;

    lock_shared_write(&ranges_lock); /* the same page may be withdrawn by two threads */
    for (char *at = begin; at < end && !result;) {
        char *run = at;

        while (run < end && !is_private(run))
            run += PAGE;
        if (run > at)
            result = exchange(at, (size_t)(run - at), fd, offset + (uint64_t)(at - begin));
        at = run + PAGE;
    }
    for (struct range *range = ranges; range && !result; range = range->next)
        if (range->begin == begin && range->end == end)
            range->exchanged = true;
    lock_shared_give(&ranges_lock);
    return result;
}

bool withdrawn_remove(const char *begin, const char *end, struct lease **leases)
{
    bool all = true;

    lock_shared_write(&ranges_lock);
    for (struct range **link = &ranges; *link;) {
        struct range *range = *link;

        if (range->begin < begin || range->end > end) {
            link = &range->next;
            continue;
        }
        *link = range->next;
        all &= range->lease != NULL;
        *leases = leases_join(range->lease, *leases);
        atomic_fetch_sub_explicit(&withdrawn_count, 1, memory_order_relaxed);
        free(range);
    }
    lock_shared_give(&ranges_lock);
    return all;
}

void withdrawn_forget(void)
{
    while (ranges) {
        struct range *range = ranges;

        ranges = range->next;
        free(range);
    }
    atomic_store_explicit(&withdrawn_count, 0, memory_order_relaxed);
}
