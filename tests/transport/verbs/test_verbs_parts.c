/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verbs_parts.c - parts of the RDMA transport: intervals, registrations, cells, queues. */
#include "base/fail.h"
#include "tests/transport/verbs/fake_verbs.h"
#include "transport/verbs/cell.h"
#include "transport/verbs/queue.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- Intervals ------------------------------------------------------------------------------- */

enum { MANY = 600, WIDE = 1000 };

static unsigned draw(unsigned below)
{
    static uint64_t state = 7;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* By looking at all of them. */
static bool any(const struct interval *all, const bool *in, uint64_t begin, uint64_t end,
                bool whole)
{
    for (int i = 0; i < MANY; i++)
        if (in[i] && (whole ? all[i].begin <= begin && end <= all[i].end
                            : all[i].begin < end && begin < all[i].end))
            return true;
    return false;
}

static void ask(const struct intervals *set, const struct interval *all, const bool *in)
{
    uint64_t begin = draw(WIDE), end = begin + 1 + draw(40);
    const struct interval *holding = intervals_holding(set, begin, end, NULL, NULL);
    const struct interval *touching = intervals_touching(set, begin, end);

    cr_expect_eq(holding != NULL, any(all, in, begin, end, true));
    cr_expect_eq(touching != NULL, any(all, in, begin, end, false));
    if (holding)
        cr_expect(holding->begin <= begin && end <= holding->end);
    if (touching)
        cr_expect(touching->begin < end && begin < touching->end);
}

Test(intervals, answers_are_those_of_looking_at_all)
{
    static struct interval all[MANY];
    static bool in[MANY];
    struct intervals set = {0};

    for (int round = 0; round < 6000; round++) {
        unsigned i = draw(MANY);

        if (in[i]) {
            intervals_remove(&set, &all[i]);
        } else {
            all[i].begin = draw(WIDE);
            all[i].end = all[i].begin + 1 + draw(round % 3 ? 5 : 200);
            intervals_add(&set, &all[i]);
        }
        in[i] = !in[i];
        ask(&set, all, in);
    }
    for (int i = 0; i < MANY; i++)
        if (in[i])
            intervals_remove(&set, &all[i]);
    cr_expect_null(set.root);
}

static unsigned depth(const struct interval *node)
{
    unsigned left = node ? depth(node->left) : 0, right = node ? depth(node->right) : 0;

    return node ? 1 + (left > right ? left : right) : 0;
}

Test(intervals, the_tree_is_shallow_also_for_ranges_in_order)
{
    static struct interval all[4096];
    struct intervals set = {0};

    for (unsigned i = 0; i < 4096; i++) {
        all[i] = (struct interval){.begin = i, .end = i + 1};
        intervals_add(&set, &all[i]);
    }
    cr_expect_lt(depth(set.root), 50, "%u", depth(set.root));
}

/* ---- Registrations --------------------------------------------------------------------------- */

static struct verbs_rails rails;
static struct verbs_memory *memory;
static char *pages;

static void begin(void)
{
    fake_verbs_open(1);
    cr_assert(verbs_rails_open(&rails) == RONDO_OK, "%s", fail_sentence());
    memory = &rails.device[0]->memory;
    pages = aligned_alloc(4096, 64 * 4096);
}

static void end(void)
{
    free(pages);
    verbs_rails_close();
    cr_expect_eq(fake.living, 0, "%d objects of the adapter are lost", fake.living);
    fake_verbs_close();
}

TestSuite(registrations, .init = begin, .fini = end);

static struct verbs_region *get(int page, int count, int access)
{
    struct verbs_region *region = NULL;

    cr_assert(verbs_memory_get(memory, pages + page * 4096, (size_t)count * 4096, access,
                               &region) == RONDO_OK,
              "%s", fail_sentence());
    return region;
}

Test(registrations, what_is_inside_of_a_range_needs_no_other)
{
    struct verbs_region *all = get(0, 64, 0), *part = get(10, 5, 0);

    cr_expect_eq(all, part);
    cr_expect_eq(memory->made, 1);
    verbs_memory_put(memory, all);
    verbs_memory_put(memory, part);
    cr_expect_eq(get(63, 1, 0), all, "it is kept when nobody uses it");
    cr_expect_eq(memory->made, 1);
    verbs_memory_put(memory, all);
}

Test(registrations, whole_pages_are_registered)
{
    struct verbs_region *region;

    cr_assert(verbs_memory_get(memory, pages + 4095, 2, 0, &region) == RONDO_OK);
    cr_expect_eq(region->range.begin, (uintptr_t)pages);
    cr_expect_eq(region->range.end, (uintptr_t)pages + 8192);
    verbs_memory_put(memory, region);
}

Test(registrations, other_rights_are_another_registration)
{
    struct verbs_region *reads = get(0, 4, 0), *writes = get(0, 4, IBV_ACCESS_LOCAL_WRITE);

    cr_expect_neq(reads, writes);
    cr_expect_eq(fake.registered, 2);
    verbs_memory_put(memory, reads);
    verbs_memory_put(memory, writes);
}

Test(registrations, memory_that_goes_away_is_forgotten)
{
    struct verbs_region *used = get(0, 4, 0), *idle = get(8, 4, 0), *again;

    verbs_memory_put(memory, idle);
    verbs_memory_forget(memory, pages + 2 * 4096, 8 * 4096);
    cr_expect_eq(fake.registered, 1, "what was idle is gone at once");
    again = get(0, 4, 0);
    cr_expect_neq(again, used, "new memory at an old address is registered anew");
    verbs_memory_put(memory, used);
    cr_expect_eq(fake.registered, 1, "what was used goes with its last user");
    verbs_memory_put(memory, again);
}

Test(registrations, the_longest_idle_go_when_too_much_is_idle)
{
    memory->idle_most = 10 * 4096;
    for (int i = 0; i < 4; i++)
        verbs_memory_put(memory, get(8 * i, 4, 0));
    cr_expect_eq(fake.registered, 2);
    verbs_memory_put(memory, get(24, 4, 0));
    cr_expect_eq(memory->made, 4, "the newest are still there");
    verbs_memory_put(memory, get(0, 4, 0));
    cr_expect_eq(memory->made, 5, "the oldest is not");
}

Test(registrations, idle_ones_make_room_when_the_system_has_none)
{
    struct verbs_region *region = NULL;

    verbs_memory_put(memory, get(0, 4, 0));
    verbs_memory_put(memory, get(8, 4, 0));
    fake.fail_registrations = 2;
    cr_expect(verbs_memory_get(memory, pages + 16 * 4096, 4096, 0, &region) == RONDO_OK);
    cr_expect_eq(fake.registered, 1, "both idle ones were given up for it");
    verbs_memory_put(memory, region);
}

Test(registrations, no_room_at_all_is_a_sentence_with_a_remedy)
{
    struct verbs_region *region = NULL;

    fake.fail_registrations = 1000;
    cr_assert(verbs_memory_get(memory, pages, 4096, 0, &region) == RONDO_ERROR_MEMORY);
    cr_expect_null(region);
    cr_expect_not_null(strstr(fail_sentence(), "4096 bytes with fake0"), "%s", fail_sentence());
    cr_expect_not_null(strstr(fail_sentence(), "RONDO_SLOT_BYTES"), "%s", fail_sentence());
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static struct verbs_cell sealed(uint64_t number, uint32_t bytes)
{
    struct verbs_cell cell = {
        .flag = 0x1234567800000001u, .bytes = bytes, .channel = 3, .inlined = 1};

    for (uint32_t i = 0; i < bytes; i++)
        cell.payload[i] = (char)(i * 7 + number);
    verbs_cell_seal(&cell, number);
    return cell;
}

Test(cells, a_whole_cell_is_read_as_it_was_written)
{
    for (uint32_t bytes = 0; bytes <= LINK_INLINE; bytes++) {
        struct verbs_cell cell = sealed(5, bytes), seen;

        cr_expect(verbs_cell_read(&cell, 5, &seen));
        cr_expect(memcmp(&cell, &seen, verbs_cell_bytes(&cell)) == 0);
        cr_expect(!verbs_cell_read(&cell, 6, &seen), "another is due");
        cr_expect(!verbs_cell_read(&cell, 5 + ((uint64_t)1 << 32), &seen), "numbers do not wrap");
    }
}

Test(cells, memory_that_was_never_written_is_no_cell)
{
    struct verbs_cell nothing = {0}, seen;

    cr_expect(!verbs_cell_read(&nothing, 0, &seen));
}

/* A reader may see any mixture of words of the old cell and the new one in the same place. */
Test(cells, a_cell_of_which_a_word_is_missing_is_not_read)
{
    for (int round = 0; round < 20000; round++) {
        uint64_t number = draw(1000);
        struct verbs_cell old = sealed(number, draw(LINK_INLINE + 1)), seen;
        struct verbs_cell new = sealed(number + 40, draw(LINK_INLINE + 1));
        uint64_t from[16], mixed[16];
        size_t words = verbs_cell_bytes(&new) / 8;
        bool whole = true;

        memcpy(mixed, &old, sizeof(old));
        memcpy(from, &new, sizeof(new));
        for (size_t i = 0; i < words; i++)
            if (draw(4))
                mixed[i] = from[i];
            else
                whole &= mixed[i] == from[i];
        cr_expect_eq(verbs_cell_read((struct verbs_cell *)(void *)mixed, number + 40, &seen),
                     whole);
    }
}

Test(cells, a_length_beyond_the_cell_is_no_cell)
{
    struct verbs_cell cell = sealed(1, 8), seen;

    cell.bytes = 4000;
    cr_expect(!verbs_cell_read(&cell, 1, &seen));
}

/* ---- Queues ---------------------------------------------------------------------------------- */

/* Looked at every 10 ms of a clock of our own, for so many seconds; false: it is given up. */
static bool attend_for(struct verbs_queue *queue, double *now, double seconds)
{
    for (int looks = (int)(100 * seconds); looks; looks--)
        verbs_queue_attend(queue, *now += 0.01, 1);
    return !queue->mute;
}

Test(queues, only_silence_that_is_longer_than_the_patience_counts)
{
    struct verbs_queue queue = {.posted = 1, .signalled = 1};
    double now = 1000;

    verbs_queue_attend(&queue, now, 1);
    cr_expect(attend_for(&queue, &now, 0.8), "it may take a second");
    queue.completed = 1;
    queue.posted = queue.signalled = 2;
    cr_expect(attend_for(&queue, &now, 0.8), "it was only slow");
    now += 3600;
    cr_expect(attend_for(&queue, &now, 0.1), "a process that was stopped has not looked");
    cr_expect_not(attend_for(&queue, &now, 0.2));
}
