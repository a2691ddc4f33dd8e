/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reads.c - trials of reading across processes, with times that are made up, and what becomes
 * of ranks that disagree. */
#include "reads_bodies.h"

#include "comm/engine/reach.h"
#include "comm/state/address.h"
#include "comm/state/reads.h"

#include <criterion/criterion.h>

/* Calls of ranks that are read across if none of them hides; returns how often that was so. */
static int run(struct reads *reads, int ranks, const double across[], const double staged[],
               int calls)
{
    int went_across = 0;

    for (int i = 0; i < calls; i++) {
        bool hidden = false;

        for (int r = 0; r < ranks; r++)
            hidden |= reads_hide(&reads[r]);
        for (int r = 0; r < ranks; r++)
            reads_note(&reads[r], !hidden, hidden ? staged[r] : across[r]);
        went_across += !hidden;
    }
    return went_across;
}

Test(reads, the_quicker_way_is_taken)
{
    const double quick[] = {1, 1}, slow[] = {3, 3};
    struct reads reads[2] = {{0}}, other[2] = {{0}};

    cr_expect_gt(run(reads, 2, quick, slow, 1000), 900);
    cr_expect_lt(run(other, 2, slow, quick, 1000), 60);
}

Test(reads, what_changes_is_noticed)
{
    const double quick[] = {1}, slow[] = {3};
    struct reads reads = {0};

    run(&reads, 1, quick, slow, 300);
    run(&reads, 1, slow, quick, 100);
    cr_expect_lt(run(&reads, 1, slow, quick, 100), 10);
    run(&reads, 1, quick, slow, 100);
    cr_expect_gt(run(&reads, 1, quick, slow, 100), 90);
}

Test(reads, one_rank_that_hides_decides_for_all)
{
    const double across[] = {1, 3}, staged[] = {2, 2};
    struct reads reads[2] = {{0}};

    cr_expect_lt(run(reads, 2, across, staged, 1000), 60);
}

/* A peer may be out of step, because it forgot what it knew. */
Test(reads, ranks_out_of_step_end_in_slots)
{
    const double quick[] = {1, 1}, slow[] = {3, 3};
    struct reads reads[2] = {{.attempts = 0}, {.attempts = 3}};

    cr_expect_lt(run(reads, 2, quick, slow, 6), 1);
    cr_expect(reads_hide(&reads[0]));
}

/* Of a rank that only receives a broadcast, say: its peers would not notice, and wait for it. */
Test(reads, nothing_is_hidden_but_an_input)
{
    const struct execution receives = {.own = {.output_kind = ADDRESS_PLAIN}};
    const struct execution sends = {.own = {.input_kind = ADDRESS_PLAIN}};

    cr_expect_not(address_shows_plain_input(&receives));
    cr_expect(address_shows_plain_input(&sends));
}

Test(reads, ranks_may_hide_in_any_set)
{
    for (int size = 2; size <= 4; size++) {
        const char *wrong = ranks_may_hide_in_any_set(size);

        cr_expect_null(wrong, "%s", wrong);
    }
}

Test(reads, ranks_may_measure_anything)
{
    for (int size = 2; size <= 4; size++) {
        const char *wrong = ranks_may_measure_anything(size, 600);

        cr_expect_null(wrong, "%s", wrong);
    }
}
