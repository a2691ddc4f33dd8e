/* SPDX-License-Identifier: BSD-3-Clause */
/* registered.c - registered ranges: a short list, searched from the front. */
#include "transport/memory/registered.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "transport/memory/page.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct range {
    struct range *next;
    char *memory;
    size_t bytes;
    uint64_t offset; /* of `memory` in the heap */
    bool hidden;     /* it is about to be moved out */
};

/* The whole pages of a range. */
struct whole {
    char *memory;
    size_t bytes; /* 0: there are none */
    uint64_t offset;
};

static struct whole whole_of(const struct range *range)
{
    size_t before = page_after(range->memory);
    size_t bytes = range->bytes > before ? (range->bytes - before) / PAGE * PAGE : 0;

    return (struct whole){range->memory + before, bytes, range->offset + before};
}

static struct range *ranges;
static struct lock_shared ranges_lock = LOCK_SHARED_AT(LOCK_REGISTERED);
FORK_RENEWS({.shared = &ranges_lock});
static atomic_uint range_count;

/* Lets calls without registered memory skip the lock. */
static bool nothing_is_registered(void)
{
    return !atomic_load_explicit(&range_count, memory_order_relaxed);
}

/* ---- What may be moved ----------------------------------------------------------------------- */

/* A line of /proc/self/maps: "begin-end perms offset device inode name". */
struct mapping {
    uintptr_t begin, end;
    char rights[5]; /* "rw-p" */
    unsigned long inode;
    char name[64];
};

static bool read_mapping(FILE *maps, struct mapping *ret_mapping)
{
    struct mapping mapping = {0};
    char line[256];
    int c;

    if (!fgets(line, sizeof(line), maps))
        return false;
    for (c = strchr(line, '\n') ? '\n' : 0; c != '\n' && c != EOF;)
        c = fgetc(maps); /* the end of a long name */
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu %63s", &mapping.begin, &mapping.end,
               mapping.rights, &mapping.inode, mapping.name) < 4)
        return false;
    *ret_mapping = mapping;
    return true;
}

/* NULL if nobody but this process sees what is written there, and it may write. */
static const char *why_not(const struct mapping *mapping)
{
    bool private = mapping->rights[3] == 'p';
    bool withdrawn = strcmp(mapping->name, "/memfd:rondo-heap") == 0; /* copied by withdrawn.c */

    if (!private || (mapping->inode && !withdrawn))
        return private ? "is mapped from a file" : "is shared with others already";
    if (strncmp(mapping->rights, "rw", 2) != 0)
        return "may not be read and written";
    if (*mapping->name && !withdrawn && strcmp(mapping->name, "[heap]") != 0 &&
        strncmp(mapping->name, "[anon:", 6) != 0)
        return "is no plain memory"; /* the stack, a driver's */
    return NULL;
}

rondo_result registered_check(const void *memory, size_t bytes)
{
    FILE *maps = descriptor_stream("/proc/self/maps", "r");
    uintptr_t at = (uintptr_t)memory, end = bytes < UINTPTR_MAX - at ? at + bytes : UINTPTR_MAX;
    const char *reason = NULL;
    struct mapping mapping;

    if (!maps)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "Cannot see what memory %p is (/proc/self/maps), so it is not "
                                "registered; use rondo_mem_alloc()",
                                memory);
    while (at < end && !reason && read_mapping(maps, &mapping)) {
        if (mapping.end <= at)
            continue;
        reason = mapping.begin > at ? "is not mapped" : why_not(&mapping);
        if (!reason)
            at = mapping.end;
    }
    fclose(maps);
    if (at >= end)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID,
                      "Only private memory can be registered, as malloc() gives it: %p %s. Calls "
                      "take it as it is, without being registered.",
                      (void *)at, reason ? reason : "is not mapped");
}

/* ---- Moving ---------------------------------------------------------------------------------- */

rondo_result registered_move_in(void *memory, size_t bytes, int fd, const char *base,
                                const char *place)
{
    struct range *range = malloc(sizeof(*range));
    struct whole whole;

    if (!range)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory while registering memory.");
    *range = (struct range){
        .memory = memory, .bytes = bytes, .offset = (uint64_t)(place - base) + page_before(memory)};
    whole = whole_of(range);
    memcpy((char *)(uintptr_t)base + whole.offset, whole.memory, whole.bytes);
    if (whole.bytes &&
        mmap(whole.memory, whole.bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)whole.offset) == MAP_FAILED) {
        free(range);
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot map %zu bytes of registered memory",
                                bytes);
    }
    lock_shared_write(&ranges_lock);
    range->next = ranges;
    ranges = range;
    atomic_fetch_add_explicit(&range_count, 1, memory_order_relaxed);
    lock_shared_give(&ranges_lock);
    return RONDO_OK;
}

/* Private pages with the same contents take the place of the mapping. */
static rondo_result restore(struct whole whole)
{
    void *fresh;

    if (!whole.bytes)
        return RONDO_OK;
    fresh = mmap(NULL, whole.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return rondo_fail_errno(RONDO_ERROR_MEMORY, "No memory to deregister %zu bytes into",
                                whole.bytes);
    memcpy(fresh, whole.memory, whole.bytes);
    if (mremap(fresh, whole.bytes, whole.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, whole.memory) ==
        MAP_FAILED) {
        munmap(fresh, whole.bytes);
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot deregister %zu bytes", whole.bytes);
    }
    return RONDO_OK;
}

/* With the lock: the link to the range that begins there; to NULL: there is none. */
static struct range **link_to(const void *memory)
{
    struct range **link = &ranges;

    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    return link;
}

void registered_hide(const void *memory)
{
    struct range *range;

    lock_shared_write(&ranges_lock);
    range = *link_to(memory);
    if (range)
        range->hidden = true;
    lock_shared_give(&ranges_lock);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in exposure_open() */
}

rondo_result registered_move_out(void *memory, uint64_t *ret_offset)
{
    struct range **link;
    struct range *range;
    rondo_result result;

    lock_shared_write(&ranges_lock);
    link = link_to(memory);
    range = *link;
    result = range ? restore(whole_of(range))
                   : rondo_fail(RONDO_ERROR_INVALID, "%p is not registered memory.", memory);
    if (!result) {
        *link = range->next;
        *ret_offset = range->offset - page_before(memory);
        atomic_fetch_sub_explicit(&range_count, 1, memory_order_relaxed);
        free(range);
    } else if (range) {
        range->hidden = false;
    }
    lock_shared_give(&ranges_lock);
    return result;
}

/* With the read lock: the range that holds so many bytes there; NULL: there is none. */
static const struct range *holding(const char *at, size_t bytes)
{
    const struct range *range = ranges;

    while (range && !(at >= range->memory && at < range->memory + range->bytes &&
                      bytes <= (size_t)(range->memory + range->bytes - at)))
        range = range->next;
    return range;
}

static bool find(const char *at, size_t bytes, bool in_whole_pages, uint64_t *ret_offset)
{
    const struct range *range;
    bool found = false;

    if (nothing_is_registered())
        return false;
    lock_shared_read(&ranges_lock);
    range = holding(at, bytes);
    if (range && !range->hidden) {
        struct whole whole = whole_of(range);

        found = !in_whole_pages || (at >= whole.memory && at + bytes <= whole.memory + whole.bytes);
        *ret_offset = range->offset + (uint64_t)(at - range->memory);
    }
    lock_shared_give(&ranges_lock);
    return found;
}

bool registered_find(const void *memory, size_t bytes, uint64_t *ret_offset)
{
    return find(memory, bytes, true, ret_offset);
}

bool registered_room(const void *memory, size_t bytes, uint64_t *ret_offset)
{
    return find(memory, bytes, false, ret_offset);
}

bool registered_block(const void *memory, char **ret_begin, size_t *ret_bytes)
{
    const struct range *range;

    if (nothing_is_registered())
        return false;
    lock_shared_read(&ranges_lock);
    range = holding(memory, 0);
    if (range) {
        *ret_begin = range->memory;
        *ret_bytes = range->bytes;
    }
    lock_shared_give(&ranges_lock);
    return range;
}

bool registered_drop(const void *memory, char **ret_begin, size_t *ret_bytes, uint64_t *ret_offset)
{
    const char *at = memory;
    struct range **link = &ranges;
    struct range *range;
    bool found;

    lock_shared_write(&ranges_lock);
    while (*link && !(at >= (*link)->memory && at < (*link)->memory + (*link)->bytes))
        link = &(*link)->next;
    range = *link;
    if (range) {
        *link = range->next;
        *ret_begin = range->memory;
        *ret_bytes = range->bytes;
        *ret_offset = range->offset - page_before(range->memory);
        atomic_fetch_sub_explicit(&range_count, 1, memory_order_relaxed);
    }
    found = range != NULL;
    lock_shared_give(&ranges_lock);
    free(range);
    return found;
}

bool registered_overlaps(const void *memory, size_t bytes)
{
    const char *at = memory;
    bool found = false;

    if (nothing_is_registered())
        return false;
    lock_shared_read(&ranges_lock);
    for (const struct range *range = ranges; range && !found; range = range->next)
        found = at < range->memory + range->bytes && range->memory < at + bytes;
    lock_shared_give(&ranges_lock);
    return found;
}

void registered_forget(void)
{
    while (ranges) {
        struct range *range = ranges;

        ranges = range->next;
        free(range);
    }
    atomic_store_explicit(&range_count, 0, memory_order_relaxed);
}
