/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trees.c - the same bits for every number of ranks. */
#include "bodies.h"
#include "trees.h"

#include <criterion/criterion.h>

static struct world_report report;

/* M micro-batches on n ranks, which give one of the sums that the header promises. */
static void check(int micro_batches, int ranks, bool processes)
{
    static float wanted[TREES_COUNT];
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = ranks, .processes = processes, .config = &config};
    struct trees *trees = world_share(sizeof(*trees));
    int failed;

    config.deterministic = 1;
    trees_reference(micro_batches, wanted);
    trees->micro_batches = micro_batches;
    trees->own = ranks % 2 == 0;
    failed = world_run(&world, trees_of_micro_batches, trees, &report);
    cr_assert(failed == 0, "%d on %d: %s", micro_batches, ranks, report.summary);
    for (int i = 0; i < TREES_COUNT; i++)
        cr_assert(trees->result[i] == wanted[i], "%d on %d: element %d is %.9g, by the tree %.9g",
                  micro_batches, ranks, i, (double)trees->result[i], (double)wanted[i]);
    world_unshare(trees, sizeof(*trees));
}

Test(ddp_trees, eight_micro_batches_give_the_same_bits_on_1_2_4_and_8_ranks)
{
    for (int ranks = 1; ranks <= 8; ranks *= 2)
        check(8, ranks, true);
    for (int ranks = 1; ranks <= 8; ranks *= 2)
        check(8, ranks, false);
}

Test(ddp_trees, any_number_gives_the_bits_of_one_rank_where_each_rank_has_a_power_of_two)
{
    check(1, 1, false);
    check(6, 1, false);
    check(6, 3, false);
    check(6, 6, false);
    check(7, 1, false);
    check(12, 3, false);
    check(21, 1, false);
}

/* The order matters for these numbers: else the tests above would show nothing. */
Test(ddp_trees, the_order_of_addition_shows_in_the_bits)
{
    static float tree[TREES_COUNT];
    int other = 0;

    trees_reference(8, tree);
    for (size_t i = 0; i < TREES_COUNT; i++) {
        float sum = 0;

        for (int micro_batch = 0; micro_batch < 8; micro_batch++)
            sum += trees_real(micro_batch, i);
        other += tree[i] != sum / 8;
    }
    cr_assert(other > TREES_COUNT / 4, "%d of %d", other, TREES_COUNT);
}
