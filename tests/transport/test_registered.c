/* SPDX-License-Identifier: BSD-3-Clause */
/* test_registered.c - private memory that moves into the heap and out again under its owner's
 * feet. */
#include "base/fail.h"
#include "child.h"
#include "transport/memory/heap.h"
#include "transport/memory/page.h"
#include "transport/memory/process.h"
#include "transport/memory/registered.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 5 };

static char *private_pages(size_t pages)
{
    char *memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert(memory != MAP_FAILED);
    for (size_t i = 0; i < pages * PAGE; i++)
        memory[i] = (char)(i * 31 + i / PAGE);
    return memory;
}

static bool is_pattern(const char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != (char)(i * 31 + i / PAGE))
            return false;
    return true;
}

Test(registered, contents_and_address_survive_the_way_in_and_out)
{
    char *memory = private_pages(PAGES);
    uint64_t offset = 0;

    cr_assert(heap_register(memory, PAGES * PAGE) == RONDO_OK, "%s", fail_sentence());
    cr_expect(is_pattern(memory, PAGES * PAGE));
    cr_assert(heap_find(memory, PAGES * PAGE, &offset));
    cr_expect(heap_base() + offset != memory, "the heap shows the same pages at its own place");
    cr_expect(is_pattern(heap_base() + offset, PAGES * PAGE));
    heap_base()[offset + 2 * PAGE] = 'x';
    cr_expect(memory[2 * PAGE] == 'x', "they are the same memory");
    cr_assert(heap_deregister(memory) == RONDO_OK, "%s", fail_sentence());
    cr_expect(memory[2 * PAGE] == 'x');
    memory[2 * PAGE] = (char)(2 * PAGE * 31 + 2);
    cr_expect(is_pattern(memory, PAGES * PAGE));
    cr_expect(heap_base() == NULL, "nothing is left in the heap");
    cr_expect(!heap_find(memory, 1, &offset));
}

Test(registered, a_range_that_is_about_to_move_out_is_a_block_that_calls_do_not_find)
{
    char *memory = private_pages(PAGES), *begin = NULL;
    uint64_t offset = 0;
    size_t bytes = 0;

    cr_assert(heap_register(memory, PAGES * PAGE) == RONDO_OK, "%s", fail_sentence());
    registered_hide(memory);
    cr_expect(!heap_find(memory, PAGES * PAGE, &offset));
    cr_expect(!registered_room(memory, PAGES * PAGE, &offset));
    cr_expect(heap_block(memory, &begin, &bytes) && begin == memory && bytes == PAGES * PAGE);
    cr_expect(heap_register(memory, PAGES * PAGE) == RONDO_ERROR_INVALID, "it is not private yet");
    cr_assert(heap_deregister(memory) == RONDO_OK, "%s", fail_sentence());
    cr_expect(is_pattern(memory, PAGES * PAGE));
}

Test(registered, only_whole_pages_move_and_the_place_has_room_for_the_rest)
{
    char *memory = private_pages(PAGES), *begin = memory + 100;
    uint64_t offset = 0, room = 0;

    cr_assert(heap_register(begin, 3 * PAGE) == RONDO_OK, "%s", fail_sentence());
    cr_expect(heap_find(memory + PAGE, 2 * PAGE, &offset), "pages 1 and 2");
    cr_expect(!heap_find(memory + PAGE - 1, 2, &room) && !heap_find(begin, 1, &room));
    cr_expect(!heap_find(memory + 3 * PAGE - 1, 2, &room) && !heap_find(begin, 3 * PAGE, &room));
    cr_assert(registered_room(begin, 3 * PAGE, &room));
    cr_expect(room + PAGE - 100 == offset);
    cr_expect(!registered_room(begin - 1, 2, &room) &&
              !registered_room(begin, 3 * PAGE + 1, &room));
    cr_expect(is_pattern(memory, PAGES * PAGE));
    heap_base()[offset] = 'x';
    cr_expect(memory[PAGE] == 'x', "page 1 is the same memory at both places");
    memory[PAGE] = (char)(PAGE * 31 + 1);
    memset(heap_base() + room, 'x', PAGE - 100);
    memset(heap_base() + offset + 2 * PAGE, 'x', 100);
    cr_expect(is_pattern(memory, PAGES * PAGE), "pages 0 and 3 are not");
    cr_expect(heap_register(begin + 3 * PAGE - 1, PAGE) == RONDO_ERROR_INVALID, "one byte of it");
    cr_expect(heap_register(begin + 3 * PAGE, PAGE) == RONDO_OK, "on the same page, behind it");
    cr_expect(heap_deregister(begin) == RONDO_OK && heap_deregister(begin + 3 * PAGE) == RONDO_OK);
    cr_expect(is_pattern(memory, PAGES * PAGE));
    cr_expect(heap_base() == NULL, "nothing is left in the heap");
}

Test(registered, less_than_a_page_has_room_too)
{
    char *memory = private_pages(2);
    uint64_t room = 0;

    for (char *begin = memory + PAGE - 12; begin < memory + PAGE + 2; begin++) {
        cr_assert(heap_register(begin, 10) == RONDO_OK, "%s", fail_sentence());
        cr_expect(!heap_find(begin, 10, &room));
        cr_assert(registered_room(begin, 10, &room));
        memcpy(heap_base() + room, begin, 10);
        cr_assert(heap_deregister(begin) == RONDO_OK);
    }
    cr_expect(is_pattern(memory, 2 * PAGE) && heap_base() == NULL);
}

Test(registered, what_is_empty_or_no_memory_is_refused_in_a_sentence)
{
    char *memory = private_pages(2);

    cr_expect(heap_register(memory, 0) == RONDO_ERROR_INVALID);
    cr_expect(strstr(fail_sentence(), "nothing to register"), "%s", fail_sentence());
    cr_expect(heap_register(memory + 1, SIZE_MAX) == RONDO_ERROR_INVALID);
    cr_expect(strstr(fail_sentence(), "Only private memory"), "%s", fail_sentence());
    cr_expect(heap_deregister(memory) == RONDO_ERROR_INVALID);
    cr_expect(strstr(fail_sentence(), "not registered"), "%s", fail_sentence());
    cr_expect(heap_base() == NULL);
}

Test(registered, more_than_the_heap_holds_is_refused_and_stays_as_it_is)
{
    char *memory = private_pages(PAGES);

    setenv("RONDO_HEAP_BYTES", "16384", 1);
    cr_expect(heap_register(memory, PAGES * PAGE) == RONDO_ERROR_MEMORY);
    cr_expect(is_pattern(memory, PAGES * PAGE));
    cr_expect(heap_base() == NULL);
}

Test(registered, a_range_is_found_up_to_its_end_and_no_further)
{
    char *one = private_pages(2);
    char *other = private_pages(3);
    uint64_t offset = 0, first = 0;

    cr_assert(heap_register(one, 2 * PAGE) == RONDO_OK &&
              heap_register(other, 3 * PAGE) == RONDO_OK);
    cr_expect(heap_find(one, 1, &first));
    cr_expect(heap_find(one + 2 * PAGE - 1, 1, &offset) && offset == first + 2 * PAGE - 1);
    cr_expect(!heap_find(one + 2 * PAGE - 1, 2, &offset), "over the end");
    cr_expect(!heap_find(one + 1, SIZE_MAX, &offset));
    cr_expect(!heap_find(one - 1, 2, &offset), "over the beginning");
    cr_expect(heap_find(other, 3 * PAGE, &offset) && is_pattern(heap_base() + offset, 3 * PAGE));
    cr_assert(heap_deregister(one) == RONDO_OK);
    cr_expect(!heap_find(one, 1, &offset));
    cr_expect(heap_find(other + 5, 1, &offset), "the other one stays");
    cr_assert(heap_deregister(other) == RONDO_OK);
}

Test(registered, memory_that_is_shared_already_is_refused)
{
    char *memory = private_pages(PAGES);
    void *shared = NULL;

    cr_assert(heap_alloc(4 * PAGE, &shared) == RONDO_OK);
    cr_expect(heap_register(shared, PAGE) == RONDO_ERROR_INVALID);
    cr_expect(heap_register((char *)shared + PAGE, PAGE) == RONDO_ERROR_INVALID);
    cr_assert(heap_register(memory + PAGE, 2 * PAGE) == RONDO_OK);
    cr_expect(heap_register(memory + PAGE, 2 * PAGE) == RONDO_ERROR_INVALID, "twice");
    cr_expect(strstr(fail_sentence(), "already"), "%s", fail_sentence());
    cr_expect(heap_register(memory, PAGES * PAGE) == RONDO_ERROR_INVALID, "around it");
    cr_expect(heap_register(memory + 2 * PAGE, PAGE) == RONDO_ERROR_INVALID, "inside of it");
    cr_assert(heap_register(memory, PAGE) == RONDO_OK, "beside it");
    cr_expect(heap_deregister(memory) == RONDO_OK && heap_deregister(memory + PAGE) == RONDO_OK);
    cr_expect(is_pattern(memory, PAGES * PAGE));
    cr_expect(heap_free(shared) == RONDO_OK);
}

/* ---- Other processes ------------------------------------------------------------------------- */

struct shown {
    struct heap_handle handle;
    char *memory;
    uint64_t offset;
};

static int write_as_a_peer(void *argument)
{
    const struct shown *shown = argument;
    struct process *process = NULL;
    char *there;

    if (process_attach(&shown->handle, &process) ||
        process_map(process, shown->offset, 2 * PAGE, &there))
        return 1;
    if (!is_pattern(there, 2 * PAGE))
        return 2;
    memcpy(there + 100, "from a peer", 12);
    process_detach(process);
    return 0;
}

Test(registered, what_a_peer_writes_appears_at_the_old_address)
{
    struct shown shown = {.memory = private_pages(2)};

    cr_assert(heap_enter(&shown.handle) == RONDO_OK);
    cr_assert(heap_register(shown.memory, 2 * PAGE) == RONDO_OK);
    cr_assert(heap_find(shown.memory, 2 * PAGE, &shown.offset));
    cr_expect(child_run(write_as_a_peer, &shown) == 0);
    cr_expect(strcmp(shown.memory + 100, "from a peer") == 0);
    cr_assert(heap_deregister(shown.memory) == RONDO_OK);
    cr_expect(strcmp(shown.memory + 100, "from a peer") == 0);
    heap_leave();
}

static int disown_what_is_the_parents(void *argument)
{
    char *memory = argument;

    if (heap_deregister(memory))
        return 1;
    memory[0] = 'c'; /* a copy of the child's own by now */
    return is_pattern(memory + 1, 0) && memory[1] == (char)31 ? 0 : 2;
}

static int forget_what_is_the_parents(void *argument)
{
    struct heap_handle handle;
    uint64_t offset;

    if (heap_enter(&handle) || heap_find(argument, 1, &offset))
        return 1;
    return heap_deregister(argument) == RONDO_ERROR_INVALID ? 0 : 2;
}

Test(registered, a_forked_child_takes_nothing_from_its_parent)
{
    char *memory = private_pages(2);

    cr_assert(heap_register(memory, 2 * PAGE) == RONDO_OK);
    cr_expect(child_run(disown_what_is_the_parents, memory) == 0);
    cr_expect(is_pattern(memory, 2 * PAGE), "the parent's pages were emptied or written");
    cr_expect(child_run(forget_what_is_the_parents, memory) == 0);
    cr_expect(is_pattern(memory, 2 * PAGE));
    cr_assert(heap_deregister(memory) == RONDO_OK);
    cr_expect(is_pattern(memory, 2 * PAGE));
}

static int write_beside(void *argument)
{
    char *memory = argument;

    memory[0] = memory[2 * PAGE - 1] = 'c';
    return 0;
}

Test(registered, what_lies_on_the_pages_beside_a_range_is_private_in_a_forked_child)
{
    char *memory = private_pages(2);

    cr_assert(heap_register(memory + 1, 2 * PAGE - 2) == RONDO_OK);
    cr_expect(child_run(write_beside, memory) == 0);
    cr_expect(is_pattern(memory, 2 * PAGE));
    cr_assert(heap_deregister(memory + 1) == RONDO_OK);
}
