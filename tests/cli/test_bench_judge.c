/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_judge.c - who is faster over a sweep, and in a matrix; none of them ever ran. */
#include "cli/bench/judge.h"
#include "cli/bench/matrix/matrix.h"

#include "tests/cli/written.h"

#include <criterion/criterion.h>
#include <string.h>

static struct bench_size sizes[2][2]; /* by pass */

/* Rondo, two peers and the limit; the second size only mpich has, too. */
static void set_options(struct bench_options *options)
{
    static const enum bench_library_id libraries[] = {BENCH_RONDO, BENCH_OPENMPI, BENCH_MPICH,
                                                      BENCH_LIMIT};

    memset(options, 0, sizeof(*options));
    options->call.collective = BENCH_ALL_REDUCE;
    options->call.type = RONDO_FLOAT32;
    options->ranks = 2;
    options->library_count = 4;
    memcpy(options->libraries, libraries, sizeof(libraries));
    options->sizes[options->size_count++] = 8;
    options->sizes[options->size_count++] = 4096;
}

static void set_times(struct bench_size *of, const double *us)
{
    for (int i = 0; i < 4; i++)
        of->results[i] = (struct bench_result){.available = us[i] > 0,
                                               .checked = true,
                                               .wrong = 0,
                                               .median = us[i] * 1e-6,
                                               .min = us[i] * 1e-6};
}

static struct bench_sweep sweep_of(const struct bench_options *options, int pass)
{
    static const double us[2][2][4] = {{{2, 1, 4, 1}, {4, 0, 32, 2}},
                                       {{2, 3, 5, 1}, {4, 0, 16, 2}}};

    for (int i = 0; i < 2; i++) {
        sizes[pass][i].bytes = options->sizes[i];
        sizes[pass][i].count = options->sizes[i] / sizeof(float);
        set_times(&sizes[pass][i], us[pass][i]);
    }
    return (struct bench_sweep){.options = options, .sizes = sizes[pass], .size_count = 2};
}

Test(bench_judge, the_best_peer_is_the_fastest_that_is_there_and_not_the_limit)
{
    struct bench_options options;
    struct bench_sweep sweep;
    struct bench_verdict verdict;

    set_options(&options);
    sweep = sweep_of(&options, 0);
    cr_expect_eq(bench_peer_count(&sweep), 2);
    cr_expect_eq(bench_best_peer(&sweep, &sweep.sizes[0]), 1);
    cr_expect_eq(bench_best_peer(&sweep, &sweep.sizes[1]), 2);
    verdict = bench_judge(&sweep, BENCH_BEST_PEER);
    cr_expect_eq(verdict.count, 2);
    cr_expect_eq(verdict.faster, 1);
    cr_expect_float_eq(bench_verdict_mean(&verdict), 2, 1e-9, "the root of 1/2 and 8");
    cr_expect_float_eq(verdict.lowest, 0.5, 1e-9);
    cr_expect_eq(verdict.lowest_bytes, 8);
    cr_expect_eq(verdict.lowest_library, 1);
    verdict = bench_judge(&sweep, 3);
    cr_expect_float_eq(bench_verdict_mean(&verdict), 0.5, 1e-9);
    cr_expect_eq(bench_judge(&sweep, 1).count, 1, "openmpi has no second size");
}

Test(bench_judge, a_library_that_was_wrong_at_a_size_is_no_best_peer_and_in_no_ratio_there)
{
    struct bench_options options;
    struct bench_sweep sweep;

    set_options(&options);
    sweep = sweep_of(&options, 0);
    sizes[0][0].results[1].wrong = 1;
    cr_expect_eq(bench_best_peer(&sweep, &sweep.sizes[0]), 2, "openmpi was faster, and wrong");
    cr_expect_float_eq(bench_ratio_to(&sweep, &sweep.sizes[0], BENCH_BEST_PEER), 2, 1e-9);
    cr_expect_eq(bench_ratio(&sweep.sizes[0], 1), 0);
    sizes[0][0].results[0].wrong = 1;
    cr_expect_eq(bench_judge(&sweep, BENCH_BEST_PEER).count, 1, "the first one was wrong itself");
}

Test(bench_judge, a_cell_has_the_medians_of_its_passes)
{
    static struct matrix_options options = {.passes = 2};
    static struct matrix_row row;
    struct matrix matrix = {.options = &options, .rows = &row, .row_count = 1, .passes = 2};
    struct matrix_cell cell;
    char *text;

    set_options(&options.bench);
    row.options = options.bench;
    row.options.memory = BENCH_MEMORY_SHARED;
    for (int pass = 0; pass < 2; pass++)
        row.sweeps[pass] = sweep_of(&row.options, pass);
    cell = matrix_cell(&matrix, 0, 0);
    cr_expect_eq(cell.best_peer, 1);
    cr_expect_float_eq(matrix_ratio(&matrix, &cell, false), 1, 1e-9, "between 1/2 and 3/2");
    cr_expect_float_eq(matrix_ratio(&matrix, &cell, true), 0.5, 1e-9);
    options.bench.csv = written_path();
    cr_assert(!matrix_write(&matrix));
    text = written_take(options.bench.csv);
    written_cut_machine(text);
    cr_expect_str_eq(
        text, "collective,memory,in_place,ranks,dtype,bytes,best_peer,ratio,faster,"
              "rondo_us,openmpi_us,mpich_us,limit_us\n"
              "all_reduce,shared,0,2,float32,8,openmpi,1.0000,no,2.0000,2.0000,4.5000,1.0000\n"
              "all_reduce,shared,0,2,float32,4096,mpich,6.0000,yes,4.0000,,24.0000,2.0000\n");
    free(text);
}
