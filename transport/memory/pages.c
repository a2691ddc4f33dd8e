/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.c - huge pages and pages ahead of time (see pages.h).
 *
 * Bringing a page costs about the same whether it is asked for or touched, so nothing is saved by
 * it but the wait in the first collective. Blocks that are a large part of the memory are left
 * alone: they may be more than their owner means to use.
 */
#include "transport/memory/pages.h"

#include "base/caller/descriptor.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PARTS = 64 }; /* of the memory; a block of more than one part is not brought ahead */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool huge;

/* The kernel shows all its policies, and the one that holds in brackets. */
static void find_policy(void)
{
    FILE *file = descriptor_stream("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
    char line[128] = "";

    if (file && !fgets(line, sizeof(line), file))
        line[0] = 0;
    if (file)
        fclose(file);
    huge = strchr(line, '[') && !strstr(line, "[never]") && !strstr(line, "[deny]");
    log_debug(
        huge ? "shared memory comes in huge pages where a block has 2 MiB or more"
             : "shared memory comes in small pages; `rondo doctor` says how to have huge ones");
}

bool pages_are_huge(void)
{
    pthread_once(&once, find_policy);
    return huge;
}

size_t pages_file_most(void)
{
    struct rlimit limit;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), most = SIZE_MAX / 2;

    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < most)
        most = limit.rlim_cur;
    return most / page * page;
}

void pages_hide(void *base, size_t bytes)
{
    madvise(base, bytes, MADV_DONTDUMP);
}

static void *reserve(size_t bytes)
{
    void *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return place == MAP_FAILED ? NULL : place;
}

void *pages_reserve(size_t bytes)
{
    char *place = reserve(bytes + PAGES_HUGE_BYTES);
    size_t before;

    if (!place)
        return reserve(bytes); /* then perhaps anywhere */
    before = -(uintptr_t)place % PAGES_HUGE_BYTES;
    if (before)
        munmap(place, before);
    munmap(place + before + bytes, PAGES_HUGE_BYTES - before);
    return place + before;
}

bool pages_put(void *place, int fd, uint64_t offset, size_t bytes)
{
    if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
             (off_t)offset) == MAP_FAILED)
        return false;
    pages_hide(place, bytes);
    return true;
}

void *pages_map(int fd, size_t bytes)
{
    void *base = pages_reserve(bytes);
    int error;

    if (!base || pages_put(base, fd, 0, bytes))
        return base;
    error = errno;
    munmap(base, bytes);
    errno = error;
    return NULL;
}

/* Ask for huge pages where they are filled; the rest of the block would cost one of its own. */
static void ask_for_huge(void *block, size_t bytes)
{
    uintptr_t start = (uintptr_t)block;
    size_t whole = bytes / PAGES_HUGE_BYTES * PAGES_HUGE_BYTES;

    if (whole && start % PAGES_HUGE_BYTES == 0 && pages_are_huge())
        madvise(block, whole, MADV_HUGEPAGE);
}

void pages_prepare(void *block, size_t bytes)
{
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    ask_for_huge(block, bytes);
    if (bytes && bytes <= memory / PARTS)
        madvise(block, bytes, MADV_POPULATE_WRITE); /* kernels before 5.14 do not know it */
}
