/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bits.c - same bits on every rank and on every
 * repetition; deterministic: the balanced tree, always. */
#include "tests/api/values/bits.h"
#include "tests/api/values/matrix.h"

#include <criterion/criterion.h>

static struct world_report report;

static struct bits *run(int size, bool processes, bool deterministic)
{
    struct bits *bits = world_share(sizeof(*bits));
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = processes, .config = &config};
    int failed;

    config.deterministic = deterministic;
    failed = world_run(&world, bits_by_algorithm, bits, &report);
    cr_assert(failed == 0, "%s", report.summary);
    return bits;
}

/* Every call that ran gave the hash of rank 0's first run. Returns how many ran. */
static int expect_same_on_ranks(const struct bits *bits, int size)
{
    int ran = 0;

    for (int t = 0; t < BITS_TYPES; t++)
        for (int a = 0; matrix_algorithms[a]; a++) {
            uint64_t wanted = bits->hash[bits_key(t, a, 0)][0];

            ran += wanted != 0;
            for (int repeat = 0; repeat < BITS_REPEATS; repeat++)
                for (int r = 0; r < size; r++)
                    cr_expect(bits->hash[bits_key(t, a, repeat)][r] == wanted,
                              "%s, type %d, rank %d of %d: other bits in run %d",
                              matrix_algorithms[a], t, r, size, repeat);
        }
    return ran;
}

/* In each type, all algorithms that ran gave the same bits as those of the other world. */
static void expect_same_by_algorithm(const struct bits *one, const struct bits *other, int size)
{
    for (int t = 0; t < BITS_TYPES; t++) {
        uint64_t wanted = 0;

        for (int a = 0; matrix_algorithms[a]; a++) {
            uint64_t hash = one->hash[bits_key(t, a, 0)][0];

            wanted = wanted ? wanted : hash;
            cr_expect(!hash || hash == wanted, "%s, type %d, %d ranks: other bits",
                      matrix_algorithms[a], t, size);
            hash = other->hash[bits_key(t, a, 0)][0];
            cr_expect(!hash || hash == wanted, "%s, type %d, %d ranks: other bits as threads",
                      matrix_algorithms[a], t, size);
        }
        cr_expect(wanted, "no algorithm ran for type %d on %d ranks", t, size);
    }
}

Test(bits, are_the_same_on_every_rank_and_every_time)
{
    for (int size = 2; size <= 9; size++) {
        struct bits *processes = run(size, true, false);

        cr_expect(expect_same_on_ranks(processes, size) > 0, "nothing ran");
    }
    for (int size = 2; size <= 9; size++) {
        struct bits *threads = run(size, false, false);

        cr_expect(expect_same_on_ranks(threads, size) > 0, "nothing ran");
    }
}

Test(bits, do_not_depend_on_algorithm_or_processes_when_deterministic)
{
    struct bits *processes[10];

    for (int size = 2; size <= 9; size++) {
        processes[size] = run(size, true, true);
        cr_expect(expect_same_on_ranks(processes[size], size) > 0, "nothing ran");
    }
    for (int size = 2; size <= 9; size++) {
        struct bits *threads = run(size, false, true);

        cr_expect(expect_same_on_ranks(threads, size) > 0, "nothing ran");
        expect_same_by_algorithm(processes[size], threads, size);
    }
}

static void expect_balanced_tree(int size, bool processes, int deterministic)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = processes, .config = &config};
    bool shared = size % 2;
    int failed;

    config.deterministic = deterministic;
    config.slot_bytes = size % 3 ? 4096 : 0; /* small ones: many segments */
    failed = world_run(&world, bits_are_the_balanced_tree, &shared, &report);
    cr_assert(failed == 0, "%s", report.summary);
}

Test(bits, are_those_of_the_balanced_tree_when_deterministic)
{
    for (int processes = 1; processes >= 0; processes--)
        for (int size = 1; size <= 13; size += size < 8 ? 1 : 5)
            expect_balanced_tree(size, processes, 1);
}

Test(bits, are_those_of_the_balanced_tree_on_one_node_when_no_algorithm_is_named)
{
    for (int processes = 1; processes >= 0; processes--)
        for (int size = 3; size <= 8; size++)
            expect_balanced_tree(size, processes, 0);
}
