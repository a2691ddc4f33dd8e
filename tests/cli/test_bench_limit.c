/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_limit.c - the sums of the limit, for many numbers of ranks, also in place. */
#include "bench/limit_sum.h"

#include <criterion/criterion.h>

enum { RANKS = 20, COUNT = 2100 }; /* more than two blocks, and a rest */

static float inputs[RANKS][COUNT], results[RANKS][COUNT];

static void expect_sums(int ranks, int outputs, size_t count, float (*to)[COUNT])
{
    const float *from[RANKS] = {NULL};
    float *sums[RANKS] = {NULL};
    int wrong = 0;

    for (int rank = 0; rank < ranks; rank++) {
        from[rank] = inputs[rank];
        sums[rank] = to[rank];
        for (int i = 0; i < COUNT; i++) {
            results[rank][i] = -1;
            inputs[rank][i] = (float)(rank + i % 7);
        }
    }
    limit_sum(sums, outputs, from, ranks, count);
    for (int o = 0; o < ranks; o++)
        for (int i = 0; i < COUNT; i++) {
            int sum = ranks * (ranks - 1) / 2 + ranks * (i % 7);
            int before = to == inputs ? o + i % 7 : -1;

            wrong += to[o][i] != (float)(o < outputs && i < (int)count ? sum : before);
        }
    cr_expect_eq(wrong, 0, "%d of %d ranks, %zu elements", outputs, ranks, count);
}

Test(bench_limit, every_number_of_ranks_is_summed_into_one_and_into_all_results)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        expect_sums(ranks, 1, COUNT - 3, results);
        expect_sums(ranks, ranks, COUNT - 3, results);
        expect_sums(ranks, ranks, 5, results);
        expect_sums(ranks, ranks, 0, results);
    }
}

Test(bench_limit, results_may_be_the_inputs)
{
    for (int ranks = 1; ranks <= RANKS; ranks++) {
        expect_sums(ranks, 1, COUNT - 1, inputs);
        expect_sums(ranks, ranks, COUNT - 1, inputs);
    }
}
