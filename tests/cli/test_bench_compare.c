/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_compare.c - what `rondo bench compare` finds, and what it does not take for a finding:
 * runs made of seeded noise of the kind that a busy virtual machine has, and small ones whose
 * probabilities are known by counting.
 */
#include "cli/bench/compare/compare.h"
#include "cli/commands.h"

#include "tests/cli/written.h"

#include "cli/common/output.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { CELLS = 24, ROUNDS = 24, SWEEPS = 4, SLOW_CELL = 9, TRIES = 10 };

/* ---- Noise ----------------------------------------------------------------------------------- */

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double u = uniform(state);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * uniform(state));
}

/* Logarithms of what each side's times are multiplied with in a sweep. */
static void start_sweep(double own[2], uint64_t *state, double slower)
{
    for (int side = 0; side < 2; side++)
        own[side] = 0.005 * normal(state) + (uniform(state) < 0.02 ? 0.3 : 0) +
                    (side == 1 ? log(slower) : 0);
}

/*
 * The noise is as measured on two virtual cores that others use too: both builds share what the
 * machine does in a moment (30 %, at times three times as slow), each has 1.5 % of its own in a
 * round and 0.5 % in a sweep, whose ranks find other memory than those before; of one cell in
 * fifty, 30 %.
 */
static void make_runs(struct compare_run runs[2], struct compare_row rows[2][CELLS], uint64_t seed,
                      double slower)
{
    uint64_t state = seed * 7919 + 1;

    for (int side = 0; side < 2; side++)
        runs[side] = (struct compare_run){.path = "made",
                                          .complete = true,
                                          .rows = rows[side],
                                          .row_count = CELLS,
                                          .sweeps = SWEEPS};
    for (int cell = 0; cell < CELLS; cell++) {
        double own[2] = {0};

        for (int side = 0; side < 2; side++) {
            rows[side][cell] =
                (struct compare_row){.library = "rondo", .round_count = ROUNDS, .steady = true};
            snprintf(rows[side][cell].cell, COMPARE_NAME, "cell %d", cell);
        }
        for (int round = 0; round < ROUNDS; round++) {
            double shared = 0.3 * normal(&state) + (uniform(&state) < 0.05 ? log(3) : 0);

            if (round % (ROUNDS / SWEEPS) == 0)
                start_sweep(own, &state, cell == SLOW_CELL ? slower : 1);
            for (int side = 0; side < 2; side++) {
                rows[side][cell].sweeps[round] = round / (ROUNDS / SWEEPS);
                rows[side][cell].rounds[round] =
                    exp(log(1 << (cell / 2)) + shared + own[side] + 0.015 * normal(&state));
            }
        }
    }
}

static struct comparison judge(uint64_t seed, double slower)
{
    static struct compare_row rows[2][CELLS];
    static struct compare_run runs[2];
    struct comparison comparison = {
        .old = &runs[0], .new = &runs[1], .paired = true, .margin = 0.03};

    make_runs(runs, rows, seed, slower);
    cr_assert(!compare_judge(&comparison, "rondo", "rondo"));
    cr_assert_eq(comparison.judged, CELLS);
    return comparison;
}

Test(bench_compare, a_build_that_is_5_percent_slower_in_one_place_is_found_ten_times)
{
    for (uint64_t seed = 1; seed <= TRIES; seed++) {
        struct comparison comparison = judge(seed, 1.05);
        const struct compare_cell *cell = &comparison.cells[SLOW_CELL];

        cr_expect_eq(comparison.slower, 1, "try %d: %d", (int)seed, comparison.slower);
        cr_expect_eq(comparison.faster, 0, "try %d: %d", (int)seed, comparison.faster);
        cr_expect_eq(cell->verdict, COMPARE_SLOWER);
        cr_expect_float_eq(cell->difference.ratio, 1 / 1.05, 0.02, "%g", cell->difference.ratio);
        cr_expect_lt(cell->difference.high, 1);
        comparison_done(&comparison);
    }
}

Test(bench_compare, the_same_build_is_not_found_ten_times)
{
    for (uint64_t seed = 1; seed <= TRIES; seed++) {
        struct comparison comparison = judge(seed, 1);

        cr_expect_eq(comparison.slower + comparison.faster, 0, "try %d", (int)seed);
        cr_expect(comparison.all.low < 1 && comparison.all.high > 1, "%g to %g", comparison.all.low,
                  comparison.all.high);
        comparison_done(&comparison);
    }
}

/* ---- What can be counted --------------------------------------------------------------------- */

Test(bench_compare, samples_that_do_not_overlap_have_the_probability_of_that_order)
{
    static const double old[] = {10, 11, 12, 13}, new[] = {5, 5.5, 6, 6.5};
    struct difference found = difference_of_samples(old, 4, new, 4);

    cr_expect_float_eq(found.p, 2.0 / 70, 1e-12, "two of the 70 orders: %g", found.p);
    cr_expect_float_eq(difference_least_p(4, 4, false), 2.0 / 70, 1e-12);
    cr_expect_float_eq(found.ratio, 2, 0.02, "%g", found.ratio);
    cr_expect(found.low > 1 && found.high < 13.0 / 5 + 1e-9, "%g to %g", found.low, found.high);
    cr_expect_geq(found.confidence, 0.95);
}

Test(bench_compare, an_order_between_has_the_probability_of_all_that_are_as_far_out)
{
    static const double old[] = {1, 2, 4}, new[] = {3, 5, 6};

    /* One pair is the other way round; 0 or 1 such pairs: 2 of 20 orders, and as many mirrored. */
    cr_expect_float_eq(difference_of_samples(old, 3, new, 3).p, 4.0 / 20, 1e-12);
    cr_expect_float_eq(difference_of_samples(new, 3, old, 3).p, 4.0 / 20, 1e-12);
}

Test(bench_compare, pairs_are_judged_by_signed_ranks)
{
    static const double old[] = {2, 30, 4, 50, 6}, new[] = {1, 10, 1, 10, 1};
    static const double mixed[] = {2.1, 10, 1, 10, 1};

    cr_expect_float_eq(difference_of_pairs(old, new, 5).p, 2.0 / 32, 1e-12, "all of one sign");
    /* The least one is negative: 0 or 1 on that side, of 32, twice. */
    cr_expect_float_eq(difference_of_pairs(old, mixed, 5).p, 4.0 / 32, 1e-12);
    cr_expect_float_eq(difference_of_pairs(old, old, 5).p, 1, 1e-12, "equal");
}

Test(bench_compare, sixty_four_rounds_each_are_counted_without_overflow)
{
    double old[NOISE_ROUNDS_MAX], new[NOISE_ROUNDS_MAX];
    struct difference found;

    for (int i = 0; i < NOISE_ROUNDS_MAX; i++) {
        old[i] = 100 + i;
        new[i] = 100.5 + i;
    }
    found = difference_of_samples(old, NOISE_ROUNDS_MAX, new, NOISE_ROUNDS_MAX);
    cr_expect(found.p > 0.5 && found.p <= 1, "%g", found.p);
    cr_expect(found.low < 1 && found.high > 1);
}

Test(bench_compare, correction_is_that_of_holm)
{
    double p[] = {0.01, 0.04, 0.03, 0.005};

    difference_correct(p, 4);
    cr_expect_float_eq(p[3], 0.02, 1e-12);
    cr_expect_float_eq(p[0], 0.03, 1e-12);
    cr_expect_float_eq(p[2], 0.06, 1e-12);
    cr_expect_float_eq(p[1], 0.06, 1e-12, "no less than the one before");
}

Test(bench_compare, what_cells_differ_by_is_told_by_most_of_them)
{
    double logarithms[] = {0.01, -0.01, 0.02, -0.02, 0.01, -0.01, 0.03, -0.03, -0.4};
    double between = difference_between_runs(logarithms, 9);

    cr_expect_float_eq(between, sqrt(0.003 / 7), 1e-9, "the outlier does not count: %g", between);
    cr_expect_eq(difference_between_runs(logarithms, 7), 0, "too few");
    /* Student's t with 6.4 degrees: one standard deviation is nothing, nineteen are. */
    cr_expect(difference_beyond_runs(between, between, 9) > 0.3);
    cr_expect(difference_beyond_runs(-0.4, between, 9) < 1e-5);
    cr_expect_float_eq(difference_beyond_runs(12.706, 1, 2), 0.00614, 0.0001,
                       "two degrees: the table says so");
}

Test(bench_compare, cells_that_are_not_steady_are_not_judged_and_wrong_values_are_counted)
{
    static struct compare_row rows[2][CELLS];
    static struct compare_run runs[2];
    struct comparison comparison = {
        .old = &runs[0], .new = &runs[1], .paired = true, .margin = 0.03};

    make_runs(runs, rows, 1, 1.5);
    rows[1][SLOW_CELL].steady = false;
    rows[1][0].wrong = 3;
    snprintf(rows[1][1].cell, COMPARE_NAME, "another one");
    rows[1][2].round_count = 0;
    cr_assert(!compare_judge(&comparison, "rondo", "rondo"));
    cr_expect_eq(comparison.slower, 0);
    cr_expect_eq(comparison.judged, CELLS - 3);
    cr_expect_eq(comparison.wrong, 3);
    cr_expect_eq(comparison.only_old, 2, "one has another name, one could not be measured");
    cr_expect_eq(comparison.only_new, 1);
    comparison_done(&comparison);
}

/* ---- Colour ---------------------------------------------------------------------------------- */

Test(bench_compare, colour_is_for_terminals_and_for_who_did_not_say_no)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    int terminal, file = open("/dev/null", O_WRONLY);

    cr_assert(master >= 0 && file >= 0 && !grantpt(master) && !unlockpt(master));
    terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    cr_assert_geq(terminal, 0);
    unsetenv("NO_COLOR");
    dup2(terminal, STDOUT_FILENO);
    cr_expect_str_eq(output_colour(OUTPUT_RED), "\033[31m");
    setenv("NO_COLOR", "1", 1);
    cr_expect_str_empty(output_colour(OUTPUT_RED));
    setenv("NO_COLOR", "", 1);
    cr_expect_str_eq(output_colour(OUTPUT_RED), "\033[31m", "empty is as if it were not there");
    dup2(file, STDOUT_FILENO);
    cr_expect_str_empty(output_colour(OUTPUT_RED));
}

/* ---- Files and the exit status --------------------------------------------------------------- */

/* A sweep of three sizes and two libraries; the time of one cell of "base" is given, and what the
 * rows say besides: ", \"wrong\": 3". */
static const char *write_sweep_with(double base_us, int rounds, const char *steady,
                                    const char *more)
{
    const char *path = written_path();
    FILE *file = fopen(path, "we");

    fprintf(file, "{\"complete\": true, \"machine\": {\"processor\": \"X\"}, \"libraries\": "
                  "[{\"name\": \"rondo\"}], \"options\": {\"collective\": \"all_reduce\", "
                  "\"ranks\": 2, \"dtype\": \"float32\", \"op\": \"sum\", \"memory\": \"host\"}, "
                  "\"rows\": [");
    for (int row = 0; row < 6; row++) {
        fprintf(file,
                "%s{\"library\": \"%s\", \"bytes\": %d, \"steady\": \"%s\"%s, "
                "\"fastest_us\": [",
                row ? ", " : "", row % 2 ? "base" : "rondo", 8 << row / 2, steady, more);
        for (int i = 0; i < rounds; i++)
            fprintf(file, "%s%g", i ? ", " : "",
                    (row == 3 ? base_us : 1) * (1 + 0.001 * ((i * 7 + row) % 5)));
        fprintf(file, "]}");
    }
    fprintf(file, "]}\n");
    fclose(file);
    return path;
}

static const char *write_sweep(double base_us, int rounds, const char *steady)
{
    return write_sweep_with(base_us, rounds, steady, "");
}

static int status_of(const char *old, const char *new, const char *more)
{
    char *arguments[] = {(char *)"compare", (char *)old, (char *)(new ? new : more),
                         (char *)(new ? more : NULL), NULL};

    return command_bench_compare(new ? more ? 4 : 3 : more ? 3 : 2, arguments);
}

Test(bench_compare, the_exit_status_is_a_gate)
{
    char same[64], slow[64], few[64], loud[64], lists[260];

    snprintf(same, sizeof(same), "%s", write_sweep(1, 12, "yes"));
    snprintf(slow, sizeof(slow), "%s", write_sweep(0.9, 12, "yes"));
    snprintf(few, sizeof(few), "%s", write_sweep(0.9, 3, "yes"));
    snprintf(loud, sizeof(loud), "%s", write_sweep(0.9, 12, "no"));
    cr_expect_eq(status_of(same, NULL, NULL), 0);
    cr_expect_eq(status_of(slow, NULL, NULL), 1, "base took 0.9 us where rondo takes 1");
    cr_expect_eq(status_of(slow, NULL, "--as=rondo,base"), 0, "faster");
    cr_expect_eq(status_of(slow, NULL, "--margin=20"), 0, "not by 20 %%");
    cr_expect_eq(status_of(same, slow, "--library=base"), 0, "faster");
    cr_expect_eq(status_of(slow, same, "--library=base"), 1, "slower");
    cr_expect_eq(status_of(few, NULL, NULL), 2, "three rounds tell nothing");
    cr_expect_eq(status_of(loud, NULL, NULL), 2, "nothing is steady");
    cr_expect_eq(status_of(same, NULL, "--as=rondo,nobody"), 2);
    snprintf(lists, sizeof(lists), "%s,%s,%s,%s", few, few, few, few);
    cr_expect_eq(status_of(lists, NULL, NULL), 1, "twelve rounds, of four sweeps");
    cr_expect_eq(status_of("/nowhere", NULL, NULL), 2);
    unlink(same);
    unlink(slow);
    unlink(few);
    unlink(loud);
}

Test(bench_compare, wrong_values_are_worse_however_noisy_the_times_are)
{
    char loud[64], few[64];

    snprintf(loud, sizeof(loud), "%s", write_sweep_with(1, 12, "no", ", \"wrong\": 3"));
    snprintf(few, sizeof(few), "%s", write_sweep_with(1, 3, "yes", ", \"wrong\": 3"));
    cr_expect_eq(status_of(loud, NULL, NULL), 1);
    cr_expect_eq(status_of(few, NULL, NULL), 1);
    unlink(loud);
    unlink(few);
}

/* Sets a member of a part of the file: its part, its name, its value. */
static void write_again(const char *path, const char *const member[3])
{
    json_t *all = json_load_file(path, 0, NULL);

    json_object_set_new(json_object_get(all, member[0]), member[1],
                        json_loads(member[2], JSON_DECODE_ANY, NULL));
    json_dump_file(all, path, 0);
    json_decref(all);
}

/* Each with what two sweeps differ in, of which all that is compared has to be the same. */
Test(bench_compare, what_was_measured_in_another_way_is_another_cell)
{
    static const char *const members[][3] = {
        {"machine", "settings", "{\"RONDO_BENCH_DIR\": \"/\"}"}, /* makes no difference */
        {"machine", "settings", "{\"RONDO_TRANSPORT\": \"tcp\"}"},
        {"options", "cold", "true"},
        {"options", "rewrite", "true"},
        {"options", "graph", "true"},
        {"options", "blocking", "true"},
        {"options", "threads", "true"},
        {"options", "deterministic", "true"},
        {"options", "hosts", "2"},
        {"options", "interface", "\"eth0\""}};
    char usual[64], other[64], more[300];
    struct compare_run run;

    snprintf(usual, sizeof(usual), "%s", write_sweep(1, 12, "yes"));
    snprintf(other, sizeof(other), "%s", write_sweep(1, 12, "yes"));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        write_again(other, members[i]);
        cr_expect_eq(status_of(usual, other, NULL), i ? 2 : 0, "%s", members[i][2]);
        write_again(usual, members[i]);
    }
    unlink(usual);
    unlink(other);
    for (int last = 1; last <= 2; last++) { /* what differs is the 121st character */
        snprintf(more, sizeof(more), ", \"settings\": \"%0120d%d\"", 0, last);
        snprintf(last == 1 ? usual : other, sizeof(usual), "%s",
                 write_sweep_with(1, 12, "yes", more));
    }
    snprintf(more, sizeof(more), "%s,%s", usual, other);
    cr_assert(!compare_read(more, false, &run));
    cr_expect_eq(run.row_count, 12);
    compare_run_done(&run);
    unlink(usual);
    unlink(other);
}

Test(bench_compare, every_file_of_a_list_counts)
{
    char list[8 * 64] = "";
    struct compare_run run;

    for (int i = 0; i < 8; i++)
        snprintf(list + strlen(list), 64, "%s%s", i ? "," : "", write_sweep(1, 16, "yes"));
    cr_assert(!compare_read(list, false, &run));
    cr_expect_eq(run.rows[0].round_count, 64);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(run.rows[0].sweeps[i], i / 8);
    compare_run_done(&run);
    for (char *path = strtok(list, ","); path; path = strtok(NULL, ","))
        unlink(path);
}

/* Makes an output of nccl-tests; -1 wrong values: it broke off, behind the end of another one. */
static void write_nccl_tests(const char *path, double us, int wrong)
{
    const char *end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.1\n";
    FILE *file = fopen(path, "we");

    fprintf(file, "%s# nThread 1 nGpus 2 minBytes 8 maxBytes 16\n", wrong < 0 ? end : "");
    for (int size = 8; size <= (wrong < 0 ? 16 : 32); size *= 2)
        fprintf(file, " %d %d float sum -1 %g 0.1 0.1 0 %g 0.1 0.1 %d\n", size, size / 4,
                size == 16 ? us : 10, 20.0, size == 32 ? wrong : 0);
    fputs(wrong < 0 ? "" : end, file);
    fclose(file);
}

Test(bench_compare, outputs_of_nccl_tests_are_read_and_told_apart)
{
    char lists[3][1024] = {""};
    const char *old = lists[0], *new = lists[1], *broken = lists[2];
    struct compare_run run;

    for (int i = 0; i < 3 * 8; i++) {
        char *list = lists[i % 3];
        const char *path = written_path();

        write_nccl_tests(path, (i % 3 == 1 ? 15 : 10) + 0.01 * i, i % 3 == 2 ? -1 : 0);
        snprintf(list + strlen(list), sizeof(lists[0]) - strlen(list), "%s%s", *list ? "," : "",
                 path);
    }
    cr_assert(!compare_read(new, false, &run));
    cr_expect_eq(run.row_count, 6, "three sizes, out of place and in place");
    cr_expect_eq(run.rows[0].round_count, 8);
    cr_expect_str_eq(run.rows[3].cell, "16 B, float, sum, root -1, in place");
    compare_run_done(&run);
    cr_expect_eq(status_of(old, new, NULL), 1, "one of them takes 15 us, not 10");
    cr_expect_eq(status_of(new, old, NULL), 0, "faster");
    cr_expect_eq(status_of(old, broken, NULL), 2, "the same, but it ended early");
    write_nccl_tests(strrchr(old, ',') + 1, 10, 3);
    cr_expect_eq(status_of(new, old, NULL), 1, "faster, but wrong");
    for (int i = 0; i < 3; i++)
        for (char *path = strtok(lists[i], ","); path; path = strtok(NULL, ","))
            unlink(path);
}

Test(bench_compare, json_has_every_cell_and_the_verdict)
{
    char slow[64], to[64], option[80];
    json_t *all, *cell;

    snprintf(slow, sizeof(slow), "%s", write_sweep(0.9, 12, "yes"));
    snprintf(to, sizeof(to), "%s", written_path());
    snprintf(option, sizeof(option), "--json=%s", to);
    cr_expect_eq(status_of(slow, NULL, option), 1);
    all = json_load_file(to, 0, NULL);
    cr_assert(all);
    cr_expect_eq(json_array_size(json_object_get(all, "cells")), 3);
    cr_expect_eq(json_integer_value(json_object_get(all, "slower")), 1);
    cr_expect_eq(json_integer_value(json_object_get(all, "status")), 1);
    cell = json_array_get(json_object_get(all, "cells"), 1);
    cr_expect_str_eq(json_string_value(json_object_get(cell, "verdict")), "slower");
    cr_expect_str_eq(json_string_value(json_object_get(cell, "cell")),
                     "all_reduce 16 B, float32, sum, host, 2 ranks");
    cr_expect_float_eq(json_number_value(json_object_get(cell, "ratio")), 0.9, 0.003);
    json_decref(all);
    unlink(slow);
    unlink(to);
}
