/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c - the shared heap of this process (see heap.h).
 *
 * Page 0 holds the identity, the rest is handed out in spans of pages. The bookkeeping is private
 * memory: nothing that a peer writes into the heap is ever believed. `lock` guards everything but
 * `base` and `end`, which heap_find() reads on the hot path: they change only while nobody uses the
 * heap.
 */
#include "transport/memory/heap.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "transport/memory/registered.h"
#include "transport/memory/heap_file.h"
#include "transport/memory/page.h"
#include "transport/memory/pages.h"
#include "transport/memory/retired.h"
#include "transport/memory/spans.h"
#include "transport/memory/withdrawn.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    struct lock lock;
    _Atomic(char *) base; /* NULL: closed */
    _Atomic(char *) end;
    struct heap_file file;
    /* Its file of shown pages is open for as long: peers that know the heap know that one, too. */
    struct heap_handle handle;
    uint32_t home; /* fork_home() of its process: a forked child opens its own */
    unsigned users;
    struct spans spans;
    size_t used; /* pages: those behind were never handed out */
} heap = {.lock = LOCK_AT(LOCK_HEAP), .file.fd = -1};
static struct lock withdrawal_lock = LOCK_AT(LOCK_WITHDRAWAL);
FORK_RENEWS({.lock = &heap.lock}, {.lock = &withdrawal_lock});

char *heap_base(void)
{
    return atomic_load_explicit(&heap.base, memory_order_relaxed);
}

/* True if all of it is in the heap, be it used or not. */
static bool heap_holds(const void *memory, size_t bytes)
{
    const char *at = memory, *base = heap_base();
    const char *end = atomic_load_explicit(&heap.end, memory_order_relaxed);

    return base && at >= base && at < end && bytes <= (size_t)(end - at);
}

static rondo_result open_heap(void)
{
    rondo_result result = shown_enter(&heap.handle.shown);

    if (result)
        return result;
    result = heap_file_open(&heap.file);
    if (result) {
        shown_leave();
        return result;
    }
    memcpy(heap.handle.id, ((struct heap_head *)(void *)heap.file.base)->id,
           sizeof(heap.handle.id));
    heap.handle.pid = (int32_t)getpid();
    heap.handle.fd = heap.file.fd;
    heap.handle.bytes = heap.file.bytes;
    heap.home = fork_home();
    heap.users = 0;
    heap.spans = (struct spans){.pages = heap.file.bytes / PAGE};
    heap.used = 0;
    spans_take(&heap.spans, 1);
    atomic_store_explicit(&heap.end, heap.file.base + heap.file.bytes, memory_order_relaxed);
    atomic_store_explicit(&heap.base, heap.file.base, memory_order_relaxed);
    return RONDO_OK;
}

/* With the lock held: open, and not the parent's, whose pages are not ours to give back. */
static bool is_ours(void)
{
    return heap_base() && !fork_is_foreign(heap.home);
}

/* The pages go back to the system; read again they are zero. */
static void punch(size_t start, size_t pages)
{
    if (fallocate(heap_file_descriptor(&heap.file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(start * PAGE), (off_t)(pages * PAGE)))
        madvise(heap_base() + start * PAGE, pages * PAGE, MADV_REMOVE);
}

/* No peer touches a span any more that was retired. */
static void give_retired(size_t start)
{
    size_t pages = spans_give(&heap.spans, start);

    if (pages)
        punch(start, pages);
}

/* Unmap and close when nothing is in it and nobody has entered it. */
static void close_if_unused(void)
{
    if (!is_ours())
        return;
    retired_reap(give_retired);
    if (heap.users || heap.spans.count > 1)
        return;
    atomic_store_explicit(&heap.base, NULL, memory_order_relaxed);
    atomic_store_explicit(&heap.end, NULL, memory_order_relaxed);
    munmap(heap.file.base, heap.file.bytes);
    heap_file_close(&heap.file);
    spans_done(&heap.spans);
    shown_leave();
}

/* With the lock held. A child after fork() leaves its parent's heap alone. */
static rondo_result ensure_open(void)
{
    if (is_ours())
        return heap_file_check(&heap.file);
    if (heap_base()) {
        heap_file_close(&heap.file);
        atomic_store_explicit(&heap.base, NULL, memory_order_relaxed);
        atomic_store_explicit(&heap.end, NULL, memory_order_relaxed);
        spans_done(&heap.spans);
        registered_forget();
        withdrawn_forget();
        retired_forget();
    }
    return open_heap();
}

rondo_result heap_enter(struct heap_handle *ret_handle)
{
    rondo_result result;

    lock_take(&heap.lock);
    result = ensure_open();
    if (!result) {
        heap.users++;
        *ret_handle = heap.handle;
    }
    close_if_unused();
    lock_give(&heap.lock);
    return result;
}

void heap_leave(void)
{
    lock_take(&heap.lock);
    if (is_ours() && heap.users)
        heap.users--;
    close_if_unused();
    lock_give(&heap.lock);
}

/* A peer that takes a closed communicator for an open one has stored into what was given back. */
static void clear_again(size_t start, size_t pages)
{
    if (start < heap.used)
        punch(start, pages);
    if (start + pages > heap.used)
        heap.used = start + pages;
}

static rondo_result take(size_t bytes, char **ret_memory)
{
    size_t pages = bytes ? (bytes - 1) / PAGE + 1 : 1;
    size_t start;

    retired_reap(give_retired);
    start = heap.spans.pages;
    if (bytes >= PAGES_HUGE_BYTES && pages_are_huge())
        start = spans_take_at(&heap.spans, pages, PAGES_HUGE_BYTES / PAGE);
    if (start == heap.spans.pages)
        start = spans_take(&heap.spans, pages);
    if (start == heap.spans.pages)
        return rondo_fail(RONDO_ERROR_MEMORY,
                          "The shared heap of %zu bytes has no room for %zu more; "
                          "RONDO_HEAP_BYTES sets its size.",
                          heap.file.bytes, bytes);
    if (heap_file_extend(&heap.file, (start + pages) * PAGE)) {
        spans_give(&heap.spans, start);
        return RONDO_ERROR_MEMORY;
    }
    clear_again(start, pages);
    *ret_memory = heap_base() + start * PAGE;
    return RONDO_OK;
}

/*
 * Private pages were exchanged for some of a block. Its addresses go back to the heap with all the
 * others; what is there in the heap's file peers may still touch. True: not any more.
 */
static bool restore(char *block, size_t bytes)
{
    size_t start = (size_t)(block - heap_base()) / PAGE;
    struct lease *leases = NULL;
    bool ends = withdrawn_remove(block, block + bytes, &leases);

    leases = leases_reap(leases);
    ends &= pages_put(block, heap_file_descriptor(&heap.file), start * PAGE, bytes);
    if (ends && !leases)
        return true;
    punch(start, bytes / PAGE);
    if (ends)
        retired_add(start, leases);
    return false;
}

static rondo_result give(char *memory)
{
    size_t start = (size_t)(memory - heap_base()) / PAGE;
    size_t pages = spans_length(&heap.spans, start);

    if (!pages)
        return rondo_fail(RONDO_ERROR_INVALID, "%p is not memory from rondo_mem_alloc().",
                          (const void *)memory);
    if (withdrawn_touches(memory, pages * PAGE) && !restore(memory, pages * PAGE))
        return RONDO_OK;
    spans_give(&heap.spans, start);
    punch(start, pages);
    return RONDO_OK;
}

rondo_result heap_alloc(size_t bytes, void **ret_memory)
{
    rondo_result result;
    char *memory = NULL;

    lock_take(&heap.lock);
    result = ensure_open();
    if (!result)
        result = take(bytes, &memory);
    lock_give(&heap.lock);
    if (!result)
        *ret_memory = memory;
    return result;
}

bool heap_is(const struct heap_handle *handle)
{
    return is_ours() && memcmp(handle, &heap.handle, sizeof(*handle)) == 0;
}

bool heap_block(const void *memory, char **ret_begin, size_t *ret_bytes)
{
    const char *at = memory;
    struct span span = {0};

    lock_take(&heap.lock);
    if (is_ours() && heap_holds(memory, 0))
        span = spans_holding(&heap.spans, (size_t)(at - heap_base()) / PAGE);
    if (span.length) {
        *ret_begin = heap_base() + span.start * PAGE;
        *ret_bytes = span.length * PAGE;
    }
    lock_give(&heap.lock);
    return span.length || registered_block(memory, ret_begin, ret_bytes);
}

/* The function that heap_watch() stores: release there, acquire here. */
static void (*_Atomic watcher)(const void *begin, size_t bytes);

void heap_watch(void (*forget)(const void *begin, size_t bytes))
{
    atomic_store_explicit(&watcher, forget, memory_order_release);
}

static void tell_watcher(const void *begin, size_t bytes)
{
    void (*forget)(const void *, size_t) = atomic_load_explicit(&watcher, memory_order_acquire);

    if (forget)
        forget(begin, bytes);
}

/* Adapters that have the block registered would go on using the pages that it has now. */
static void forget_block(const void *memory, bool at_its_beginning)
{
    char *begin;
    size_t bytes;

    if (heap_block(memory, &begin, &bytes) && (begin == memory || !at_its_beginning))
        tell_watcher(begin, bytes);
}

rondo_result heap_free(void *memory)
{
    char *at = memory;
    rondo_result result;

    if (!memory)
        return RONDO_OK;
    forget_block(memory, true);
    lock_take(&heap.lock);
    if (!is_ours() || at <= heap_base() || at >= heap.end || (uintptr_t)at % PAGE != 0)
        result =
            rondo_fail(RONDO_ERROR_INVALID, "%p is not memory from rondo_mem_alloc().", memory);
    else
        result = give(at);
    close_if_unused();
    lock_give(&heap.lock);
    return result;
}

void heap_retire(void *memory, size_t keep, struct lease *lease)
{
    lock_take(&heap.lock);
    if (is_ours()) {
        size_t start = (size_t)((char *)memory - heap_base()) / PAGE;
        size_t kept = (keep + PAGE - 1) / PAGE;

        if (spans_length(&heap.spans, start) > kept)
            punch(start + kept, spans_length(&heap.spans, start) - kept);
        if (lease)
            retired_add(start, lease);
    }
    lock_give(&heap.lock);
}

bool heap_find(const void *memory, size_t bytes, uint64_t *ret_offset)
{
    if (!heap_holds(memory, bytes))
        return registered_find(memory, bytes, ret_offset);
    *ret_offset = (uint64_t)((const char *)memory - heap_base());
    return !withdrawn_touches(memory, bytes);
}

/* With the lock held. Memory that is shared already must not
 * be mapped a second time: peers would see the old pages. */
static rondo_result check_private(const char *memory, size_t bytes)
{
    const char *end = atomic_load_explicit(&heap.end, memory_order_relaxed);

    if ((memory < end && heap_base() < memory + bytes) || registered_overlaps(memory, bytes))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%p is shared memory already, from rondo_mem_alloc() or registered "
                          "before; it need not be registered.",
                          (const void *)memory);
    return registered_check(memory, bytes);
}

rondo_result heap_register(void *memory, size_t bytes)
{
    rondo_result result;
    char *place = NULL;

    if (!bytes)
        return rondo_fail(RONDO_ERROR_INVALID, "There is nothing to register in 0 bytes at %p.",
                          memory);
    lock_take(&heap.lock);
    result = ensure_open();
    if (!result)
        result = check_private(memory, bytes);
    if (!result)
        result = take(page_before(memory) + bytes, &place);
    if (!result) {
        result = registered_move_in(memory, bytes, heap.file.fd, heap_base(), place);
        if (result)
            give(place);
    }
    close_if_unused();
    lock_give(&heap.lock);
    return result;
}

rondo_result heap_deregister(void *memory)
{
    rondo_result result;
    uint64_t offset = 0;

    forget_block(memory, true);
    lock_take(&withdrawal_lock);
    lock_take(&heap.lock);
    result = registered_move_out(memory, &offset);
    if (!result &&
        is_ours()) /* a forked child has its own pages again, the place is its parent's */
        result = give(heap_base() + offset);
    close_if_unused();
    lock_give(&heap.lock);
    lock_give(&withdrawal_lock);
    return result;
}

/* The addresses of a range that was registered are the caller's. Where it lies in the heap, peers
 * of any communicator may store, as may calls of this process that use the place itself: it is
 * never handed out again, and its pages go back to the system. */
static rondo_result drop_registered(const struct heap_withdrawal *withdrawal)
{
    char *begin, *first, *end;
    size_t bytes;
    uint64_t offset;
    rondo_result result;

    if (!registered_drop(withdrawal->memory, &begin, &bytes, &offset))
        return RONDO_OK;                       /* by another call that failed */
    atomic_thread_fence(memory_order_seq_cst); /* as in withdrawn_note() */
    withdrawal->warn(withdrawal->context, begin, begin + bytes, true);
    first = begin + page_after(begin);
    end = begin + bytes - page_before(begin + bytes);
    result = withdrawn_exchange(first, end, heap_file_descriptor(&heap.file),
                                offset + page_before(begin) + page_after(begin));
    if (!result)
        heap_retire(heap_base() + offset, 0, NULL);
    return result;
}

static rondo_result withdraw_registered(const struct heap_withdrawal *withdrawal)
{
    rondo_result result;

    if (withdrawal->lease)
        withdrawal->lease->ops->close(withdrawal->lease);
    lock_take(&withdrawal_lock); /* who finds it dropped waits until its pages are exchanged */
    result = drop_registered(withdrawal);
    lock_give(&withdrawal_lock);
    return result;
}

rondo_result heap_withdraw(const struct heap_withdrawal *withdrawal)
{
    uintptr_t at = (uintptr_t)withdrawal->memory;
    char *begin = (char *)(at - at % PAGE);
    char *end = begin + (at % PAGE + withdrawal->bytes + PAGE - 1) / PAGE * PAGE;
    rondo_result result;

    forget_block(withdrawal->memory, false);
    if (!heap_holds(begin, 0))
        return withdraw_registered(withdrawal);
    result = withdrawn_note(begin, end, withdrawal->lease);
    if (result)
        return result;
    withdrawal->warn(withdrawal->context, begin, end, false);
    return withdrawn_exchange(begin, end, heap_file_descriptor(&heap.file),
                              (uint64_t)(begin - heap_base()));
}
