/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_heap_pages.c - where shared files are mapped; blocks are there before they are used.
 */
#include "transport/memory/pages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, BYTES = 3 * PAGES_HUGE_BYTES + 5 * PAGE };

static int shared_file(void)
{
    int fd = memfd_create("test-pages", MFD_CLOEXEC);

    cr_assert(fd >= 0 && !ftruncate(fd, BYTES));
    return fd;
}

static size_t pages_here(void *memory, size_t bytes)
{
    static unsigned char there[BYTES / PAGE];
    size_t count = 0;

    cr_assert(!mincore(memory, bytes, there));
    for (size_t i = 0; i < bytes / PAGE; i++)
        count += there[i] & 1;
    return count;
}

Test(heap_pages, a_file_is_mapped_at_a_multiple_of_a_huge_page_and_nothing_beside_it)
{
    int fd = shared_file();
    char *first = pages_map(fd, BYTES);
    char *second = pages_map(fd, BYTES);

    cr_assert(first && second);
    cr_expect_eq((uintptr_t)first % PAGES_HUGE_BYTES, 0);
    cr_expect_eq((uintptr_t)second % PAGES_HUGE_BYTES, 0);
    first[BYTES - 1] = 7;
    cr_expect_eq(second[BYTES - 1], 7);
    cr_expect(msync(first + BYTES, PAGE, MS_ASYNC) && errno == ENOMEM, "the rest was given back");
    munmap(first, BYTES);
    munmap(second, BYTES);
    close(fd);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
Test(heap_pages, where_address_space_is_short_any_place_will_do)
{
    struct rlimit limit;
    int fd = shared_file();
    size_t used = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    cr_assert(file && fscanf(file, "%zu", &used) == 1);
    fclose(file);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = used * PAGE + BYTES + PAGES_HUGE_BYTES / 2;
    cr_assert(!setrlimit(RLIMIT_AS, &limit));
    cr_expect(pages_map(fd, BYTES));
    cr_expect_null(pages_map(fd, BYTES));
    close(fd);
}
#endif

Test(heap_pages, a_prepared_block_is_there_before_it_is_used)
{
    int fd = shared_file();
    char *memory = pages_map(fd, BYTES);

    cr_assert(memory);
    cr_expect_eq(pages_here(memory, BYTES), 0);
    pages_prepare(memory, BYTES);
    if (pages_here(memory, BYTES) == 0)
        cr_skip_test("this kernel brings no pages ahead");
    cr_expect_eq(pages_here(memory, BYTES), BYTES / PAGE);
    munmap(memory, BYTES);
    close(fd);
}

Test(heap_pages, a_block_that_is_a_large_part_of_the_memory_is_left_alone)
{
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * PAGE / 2;
    int fd = memfd_create("test-pages", MFD_CLOEXEC);
    char *memory;

    cr_assert(fd >= 0 && !ftruncate(fd, (off_t)bytes));
    memory = pages_map(fd, bytes);
    cr_assert(memory);
    pages_prepare(memory, bytes);
    cr_expect_eq(pages_here(memory, BYTES), 0);
    munmap(memory, bytes);
    close(fd);
}
