/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_noise.c - quantiles, intervals and steadiness of rounds that are made up. */
#include "cli/bench/judge.h"

#include <criterion/criterion.h>
#include <math.h>

Test(bench_noise, quantiles_are_values_that_were_measured)
{
    double values[100];

    for (int i = 0; i < 100; i++)
        values[i] = i + 1;
    cr_expect_eq(noise_quantile(values, 100, 0.95), 95);
    cr_expect_eq(noise_quantile(values, 100, 0.99), 99);
    cr_expect_eq(noise_quantile(values, 1, 0.99), 1);
    cr_expect_eq(noise_quantile(values, 0, 0.5), 0);
}

/* Ranks of the sign test's interval, from a table of the binomial distribution. */
Test(bench_noise, the_interval_of_a_median_has_the_ranks_of_the_sign_test)
{
    static const struct {
        int count, low, high;
        double confidence;
    } table[] = {
        {2, 1, 2, 0.5},    {5, 1, 5, 0.9375},   {6, 1, 6, 0.96875},
        {9, 2, 8, 0.9609}, {20, 6, 15, 0.9586},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        double values[20];
        struct noise_interval interval;

        for (int k = 0; k < table[i].count; k++)
            values[k] = table[i].count - k;
        interval = noise_median_interval(values, table[i].count);
        cr_expect_eq(interval.low, table[i].low, "of %d: %g", table[i].count, interval.low);
        cr_expect_eq(interval.high, table[i].high, "of %d: %g", table[i].count, interval.high);
        cr_expect_float_eq(interval.confidence, table[i].confidence, 1e-4);
    }
    cr_expect_eq(noise_median_interval(NULL, 0).confidence, 0, "nothing is known of nothing");
}

/* A row of rounds of three batches each. */
static struct bench_result row_of(const double *rounds, int count)
{
    struct bench_result row = {.available = true};
    double all[3 * NOISE_ROUNDS_MAX];

    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++)
            all[3 * i + k] = rounds[i];
        noise_add_round(&row.noise, &all[3 * i], 3);
    }
    row.median = bench_median(all, 3 * count);
    row.min = all[0];
    noise_conclude(&row.noise, all, 3 * count);
    return row;
}

Test(bench_noise, a_row_has_what_most_batches_were_no_longer_than_and_the_longest)
{
    static const double rounds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct bench_result row = row_of(rounds, 10);

    cr_expect_eq(row.noise.p90, 9);
    cr_expect_eq(row.noise.p95, 10);
    cr_expect_eq(row.noise.max, 10);
}

Test(bench_noise, one_bad_round_is_no_harm_and_two_are)
{
    static const double calm[] = {10, 10, 11, 10, 10}, one[] = {10, 10, 900, 10, 10};
    static const double two[] = {10, 900, 10, 900, 10}, late[] = {10, 90, 91, 92, 90};

    cr_expect_not(row_of(calm, 5).noise.unsteady);
    cr_expect_not(row_of(one, 5).noise.unsteady);
    cr_expect(row_of(two, 5).noise.unsteady);
    cr_expect(row_of(late, 5).noise.unsteady, "once it was nine times as fast");
}

Test(bench_noise, a_ratio_is_one_of_the_same_round)
{
    static const double ours[] = {1, 2, 3, 4, 5}, theirs[] = {2, 4, 6.3, 8, 9.5};
    struct bench_result a = row_of(ours, 5), b = row_of(theirs, 5);
    struct noise_interval interval = noise_ratio_interval(&a.noise, &b.noise);

    cr_expect_float_eq(interval.low, 1.9, 1e-9);
    cr_expect_float_eq(interval.high, 2.1, 1e-9);
}

Test(bench_noise, means_leave_out_what_is_not_steady)
{
    static const double calm[] = {10, 10, 10}, wild[] = {10, 3000, 900};
    static struct bench_options options = {.libraries = {BENCH_RONDO, BENCH_MPICH},
                                           .library_count = 2};
    static struct bench_size sizes[2];
    struct bench_sweep sweep = {.options = &options, .sizes = sizes, .size_count = 2};
    struct bench_verdict verdict;

    sizes[0].results[0] = sizes[0].results[1] = sizes[1].results[0] = row_of(calm, 3);
    sizes[1].results[1] = row_of(wild, 3);
    verdict = bench_judge(&sweep, BENCH_BEST_PEER);
    cr_expect_eq(verdict.count, 1);
    cr_expect_eq(verdict.left_out, 1);
    cr_expect_float_eq(bench_verdict_mean(&verdict), 1, 1e-9);
}
