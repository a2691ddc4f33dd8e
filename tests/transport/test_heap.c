/* SPDX-License-Identifier: BSD-3-Clause */
/* test_heap.c - the shared heap: what it hands out, what it refuses, forks and limits. */
#include "base/fail.h"
#include "child.h"
#include "transport/memory/heap.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096 };

static bool is_filled(const unsigned char *bytes, size_t count, int with)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != with)
            return false;
    return true;
}

static char *take(size_t bytes)
{
    void *memory = NULL;

    cr_assert(heap_alloc(bytes, &memory) == RONDO_OK, "%s", fail_sentence());
    return memory;
}

Test(heap, memory_is_zero_again_when_it_is_reused)
{
    char *keep = take(1);
    char *first = take(5 * PAGE + 1);

    memset(first, 0xa5, 6 * PAGE);
    cr_assert(heap_free(first) == RONDO_OK);
    cr_expect(take(3 * PAGE) == first, "the same place");
    cr_expect(is_filled((unsigned char *)first, 6 * PAGE, 0));
    cr_expect(heap_free(first) == RONDO_OK && heap_free(keep) == RONDO_OK);
}

Test(heap, every_size_begins_on_a_page_also_none_at_all)
{
    static const size_t sizes[] = {0, 1, PAGE - 1, PAGE, PAGE + 1, 100 * PAGE};
    char *end = NULL;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *memory = take(sizes[i]);

        cr_expect((uintptr_t)memory % PAGE == 0);
        cr_expect(memory >= end, "pieces do not overlap");
        end = memory + (sizes[i] ? sizes[i] : 1);
    }
}

Test(heap, what_it_did_not_hand_out_is_refused_in_a_sentence)
{
    static char foreign[3 * PAGE];
    char *memory = take(3 * PAGE);
    void *wrong[] = {foreign,     memory + 1,         memory + PAGE,
                     heap_base(), heap_base() - PAGE, (void *)(UINTPTR_MAX / PAGE * PAGE)};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        fail_clear();
        cr_expect(heap_free(wrong[i]) == RONDO_ERROR_INVALID, "%zu: %p", i, wrong[i]);
        cr_expect(strstr(fail_sentence(), "rondo_mem_alloc"), "%s", fail_sentence());
    }
    cr_expect(heap_free(memory) == RONDO_OK);
    cr_expect(heap_free(memory) == RONDO_ERROR_INVALID, "twice");
    cr_expect(heap_free(NULL) == RONDO_OK);
}

Test(heap, the_descriptor_goes_with_the_last_use)
{
    int before = child_descriptors();
    struct heap_handle handle, again;
    char *memory;

    cr_assert(heap_enter(&handle) == RONDO_OK && heap_enter(&again) == RONDO_OK);
    cr_expect(memcmp(handle.id, again.id, sizeof(handle.id)) == 0 && handle.fd == again.fd);
    cr_expect(child_descriptors() == before + 2, "and that of what it shows");
    memory = take(PAGE);
    heap_leave();
    heap_leave();
    cr_expect(heap_base() != NULL, "something is in it");
    cr_expect(heap_free(memory) == RONDO_OK);
    cr_expect(heap_base() == NULL);
    cr_expect(child_descriptors() == before);
    cr_assert(heap_enter(&again) == RONDO_OK);
    cr_expect(memcmp(handle.id, again.id, sizeof(handle.id)) != 0,
              "another heap, another identity");
    heap_leave();
    cr_expect(child_descriptors() == before);
}

Test(heap, tells_where_memory_lies_and_what_lies_outside)
{
    char *memory = take(2 * PAGE);
    char outside;
    struct heap_handle handle;
    uint64_t offset = 0;

    cr_assert(heap_enter(&handle) == RONDO_OK);
    cr_expect(heap_find(memory, 2 * PAGE, &offset) && heap_base() + offset == memory);
    cr_expect(heap_find(memory + 17, 1, &offset) && heap_base() + offset == memory + 17);
    cr_expect(heap_find(heap_base() + handle.bytes - 1, 1, &offset) && offset == handle.bytes - 1);
    cr_expect(!heap_find(heap_base() + handle.bytes - 1, 2, &offset), "over the end");
    cr_expect(!heap_find(heap_base() + handle.bytes, 0, &offset));
    cr_expect(!heap_find(memory, SIZE_MAX, &offset), "sums would overflow");
    cr_expect(!heap_find(&outside, 1, &offset));
    heap_leave();
}

Test(heap, gives_pages_back_but_not_the_place_when_retired)
{
    char *memory = take(4 * PAGE);
    char *after;

    memset(memory, 1, 4 * PAGE);
    heap_retire(memory, PAGE + 1, NULL);
    cr_expect(is_filled((unsigned char *)memory, 2 * PAGE, 1), "what is kept");
    cr_expect(is_filled((unsigned char *)memory + 2 * PAGE, 2 * PAGE, 0), "what is not");
    after = take(PAGE);
    cr_expect(after >= memory + 4 * PAGE);
    cr_expect(heap_free(after) == RONDO_OK);
    cr_expect(heap_base() != NULL, "a retired place keeps the heap open");
}

/* ---- Limits ---------------------------------------------------------------------------------- */

Test(heap, is_as_small_as_the_environment_says_and_says_so_when_full)
{
    struct heap_handle handle;
    void *memory = NULL;

    setenv("RONDO_HEAP_BYTES", "40961", 1); /* eleven pages, the first one is the head */
    cr_assert(heap_enter(&handle) == RONDO_OK);
    cr_expect(handle.bytes == 11 * PAGE);
    cr_expect(heap_alloc(10 * PAGE + 1, &memory) == RONDO_ERROR_MEMORY);
    cr_expect(strstr(fail_sentence(), "RONDO_HEAP_BYTES"), "%s", fail_sentence());
    cr_expect(heap_alloc(SIZE_MAX, &memory) == RONDO_ERROR_MEMORY);
    cr_expect(memory == NULL, "outputs are written on success only");
    cr_assert(heap_alloc(10 * PAGE, &memory) == RONDO_OK);
    cr_expect(heap_free(memory) == RONDO_OK);
    heap_leave();
}

static int without(int what, rlim_t limit)
{
    struct rlimit before, rlimit;
    struct heap_handle handle;
    void *memory = NULL;
    int descriptors = child_descriptors();
    rondo_result result;

    if (getrlimit(what, &before))
        return 1;
    rlimit = (struct rlimit){limit, before.rlim_max};
    if (setrlimit(what, &rlimit))
        return 1;
    fail_clear();
    result = heap_enter(&handle);
    if (!result || strlen(fail_sentence()) < 20)
        return 2;
    if (heap_alloc(1, &memory) != result || memory || heap_base())
        return 3;
    if (setrlimit(what, &before))
        return 1;
    return child_descriptors() == descriptors ? 0 : 4;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static int without_address_space(void *unused)
{
    return without(RLIMIT_AS, (rlim_t)1 << 33);
}

Test(heap, too_little_address_space_is_said_and_nothing_stays_open)
{
    setenv("RONDO_HEAP_BYTES", "1T", 1);
    cr_expect(child_run(without_address_space, NULL) == 0);
}
#endif

static int without_descriptors(void *unused)
{
    return without(RLIMIT_NOFILE, 3);
}

Test(heap, too_few_descriptors_are_said)
{
    cr_expect(child_run(without_descriptors, NULL) == 0);
}

static int without_large_files(void *unused)
{
    setenv("RONDO_HEAP_BYTES", "1G", 1);
    return without(RLIMIT_FSIZE, 1 << 20);
}

/* Batch systems and login scripts set such a limit. A signal would end the child. */
static int with_smaller_files(void *unused)
{
    struct rlimit limit = {(rlim_t)1 << 28, (rlim_t)1 << 28};
    struct heap_handle handle;

    if (setrlimit(RLIMIT_FSIZE, &limit) || heap_enter(&handle))
        return 1;
    return handle.bytes == (size_t)1 << 28 ? 0 : 2;
}

Test(heap, is_no_larger_than_a_file_may_be)
{
    cr_expect(child_run(with_smaller_files, NULL) == 0);
}

Test(heap, too_small_files_are_said_and_nothing_stays_open)
{
    signal(SIGXFSZ, SIG_IGN);
    cr_expect(child_run(without_large_files, NULL) == 0);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

struct inherited {
    char *memory;
    struct heap_handle handle;
};

static int open_another(void *argument)
{
    const struct inherited *parents = argument;
    struct heap_handle handle;
    void *memory = NULL;

    if (heap_enter(&handle) || memcmp(handle.id, parents->handle.id, sizeof(handle.id)) == 0)
        return 1;
    if (handle.pid != getpid() || heap_alloc(PAGE, &memory))
        return 2;
    memset(memory, 9, PAGE);
    if (!is_filled((unsigned char *)parents->memory, 2 * PAGE, 7))
        return 3; /* still to be read here */
    if (heap_free(memory))
        return 4;
    heap_leave();
    return heap_base() ? 5 : 0;
}

/* A child closes all it knows before it has a heap of its own. */
static int free_what_is_the_parents(void *argument)
{
    const struct inherited *parents = argument;
    rondo_result result = heap_free(parents->memory);

    heap_retire(parents->memory, 0, NULL);
    return result == RONDO_ERROR_INVALID && strlen(fail_sentence()) > 10 ? 0 : 1;
}

static int leave_what_is_the_parents(void *argument)
{
    heap_leave();
    heap_leave();
    return free_what_is_the_parents(argument);
}

/* A child does so afterwards: nothing that it opened itself suffers either. */
static int open_then_leave_what_is_the_parents(void *argument)
{
    struct heap_handle handle;

    heap_leave();
    if (heap_enter(&handle))
        return 1;
    if (free_what_is_the_parents(argument))
        return 3;
    return heap_base() && heap_base()[0] == (char)handle.id[0] ? 0 : 2;
}

Test(heap, a_forked_child_gets_its_own_and_leaves_the_parents_alone)
{
    struct inherited parents = {.memory = take(2 * PAGE)};

    cr_assert(heap_enter(&parents.handle) == RONDO_OK);
    memset(parents.memory, 7, 2 * PAGE);
    cr_expect(child_run(open_another, &parents) == 0);
    cr_expect(is_filled((unsigned char *)parents.memory, 2 * PAGE, 7));
    cr_expect(child_run(free_what_is_the_parents, &parents) == 0);
    cr_expect(is_filled((unsigned char *)parents.memory, 2 * PAGE, 7),
              "a child that frees what it inherited empties the parent's memory");
    cr_expect(child_run(leave_what_is_the_parents, &parents) == 0);
    cr_expect(is_filled((unsigned char *)parents.memory, 2 * PAGE, 7));
    cr_expect(child_run(open_then_leave_what_is_the_parents, &parents) == 0);
    cr_expect(is_filled((unsigned char *)parents.memory, 2 * PAGE, 7));
    cr_expect(heap_free(parents.memory) == RONDO_OK);
    heap_leave();
    cr_expect(heap_base() == NULL);
}
