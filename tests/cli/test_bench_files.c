/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_files.c - CSV and JSON of a sweep that never ran. */
#include "cli/bench/judge.h"
#include "cli/bench/report.h"

#include "tests/cli/written.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct bench_options options;
static struct bench_group groups[2];
static struct bench_size sizes[2];

static struct bench_sweep sweep_of_two(void)
{
    struct bench_sweep sweep = {
        .options = &options, .groups = groups, .sizes = sizes, .size_count = 2};

    options.call.collective = BENCH_ALL_REDUCE;
    options.call.type = RONDO_FLOAT32;
    strcpy(options.call.algorithm, "ring");
    options.memory = BENCH_MEMORY_SHARED;
    options.libraries[1] = BENCH_MPICH;
    groups[0].kind = &bench_kinds[BENCH_RONDO];
    groups[1].kind = &bench_kinds[BENCH_MPICH];
    options.library_count = 2;
    groups[0].size = groups[1].size = 4;
    sizes[0].bytes = 1000000;
    sizes[0].results[0] = (struct bench_result){.available = true,
                                                .checked = true,
                                                .ran = "hierarchy",
                                                .median = 1e-3,
                                                .min = 0.5e-3,
                                                .predicted = 3.25e-6};
    sizes[0].results[1] = (struct bench_result){
        .available = true, .checked = true, .wrong = 0, .median = 2e-3, .min = 1e-3};
    sizes[1].bytes = 2000000;
    sizes[1].results[0] = (struct bench_result){
        .available = true, .checked = false, .wrong = 0, .median = 4e-3, .min = 3e-3};
    return sweep; /* mpich has no second result */
}

Test(bench_files, csv_has_exactly_the_promised_columns)
{
    struct bench_sweep sweep = sweep_of_two();
    char *text;

    sizes[0].results[1].wrong = 3; /* so that it is compared with nothing */
    options.csv = written_path();
    cr_assert(
        !bench_sweeps_write(&(struct bench_sweeps){.list = &sweep, .count = 1, .expected = 1}));
    text = written_take(options.csv);
    written_cut_machine(text);
    cr_expect_str_eq(
        text, "library,collective,algorithm,ranks,bytes,dtype,op,memory,in_place,median_us,min_us,"
              "algbw_GBps,busbw_GBps,wrong,p95_us,p99_us,spread,rank_spread,steady,ratio,ratio_low,"
              "ratio_high,ratio_confidence,root,settings,trace,communicators,buffers,"
              "messages_per_s,pure_us,compute_us,overlap,rank_bytes,communicator_bytes,ran,p90_us,"
              "max_us,predicted_us\n"
              "rondo,all_reduce,ring,4,1000000,float32,sum,shared,0,"
              "1000.0000,500.0000,1.000000,1.500000,0,,,,,,,,,,-1,,,1,1,,,,,0,0,hierarchy,,,"
              "3.2500\n"
              "mpich,all_reduce,auto,4,1000000,float32,sum,host,0,"
              "2000.0000,1000.0000,0.500000,0.750000,3,,,,,,,,,,-1,,,1,1,,,,,0,0,,,,\n"
              "rondo,all_reduce,ring,4,2000000,float32,sum,shared,0,"
              "4000.0000,3000.0000,0.500000,0.750000,,,,,,,,,,,-1,,,1,1,,,,,0,0,,,,\n");
    free(text);
}

Test(bench_files, json_names_machine_libraries_options_and_rows)
{
    struct bench_sweep sweep = sweep_of_two();
    json_error_t error;
    json_t *all;
    json_t *row;
    char *text;

    sizes[0].results[1].wrong = 3;
    options.json = written_path();
    cr_assert(
        !bench_sweeps_write(&(struct bench_sweeps){.list = &sweep, .count = 1, .expected = 1}));
    text = written_take(options.json);
    all = json_loads(text, 0, &error);
    free(text);
    cr_assert(all, "%s", error.text);
    cr_expect_gt(json_integer_value(json_object_get(json_object_get(all, "machine"), "processors")),
                 0);
    cr_expect_eq(json_array_size(json_object_get(all, "libraries")), 2);
    cr_expect_str_eq(
        json_string_value(json_object_get(json_object_get(all, "options"), "algorithm")), "ring");
    cr_expect_eq(json_array_size(json_object_get(all, "rows")), 4);
    row = json_array_get(json_object_get(all, "rows"), 3);
    cr_expect(json_is_false(json_object_get(row, "available")));
    row = json_array_get(json_object_get(all, "rows"), 1);
    cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 3);
    json_decref(all);
}

/* People read this, to the letter: a record of the first library, then one of the other. */
Test(bench_files, the_table_has_a_line_per_size_and_na_where_nothing_is_known)
{
    struct bench_sweep sweep = sweep_of_two();
    FILE *file = tmpfile();
    char text[4096] = "";

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    for (sweep.size_count = 0; sweep.size_count < 2; sweep.size_count++)
        bench_table_row(&sweep);
    cr_assert_gt(pread(fileno(file), text, sizeof(text) - 1, 0), 0);
    fclose(file);
    cr_expect_str_eq(
        text, "     1000000            0     float32    sum    -1       1000      500.0"
              "        n/a        n/a    "
              "1.000    1.500       0       hierarchy |       2000      2.000       0 |      "
              "mpich    2.000    yes\n"
              "     2000000            0     float32    sum    -1       4000       3000"
              "        n/a        n/a    "
              "0.500    0.750     N/A               - |        n/a        n/a     n/a |      "
              "  n/a      n/a    n/a\n");
}

/* Returns the lines that the format of nccl-tests has at the end of a sweep. free() them. */
static char *nccl_lines(const struct bench_sweep *sweep)
{
    FILE *file = tmpfile();
    char *text = calloc(1, 4096);

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    bench_formats[BENCH_NCCL_TESTS].end(sweep);
    fflush(stdout);
    cr_assert_geq(pread(fileno(file), text, 4095, 0), 0);
    fclose(file);
    return text;
}

static const char size_1_out[] = "     1000000             0     float     sum      -1  1000.00    "
                                 "1.00    1.50       0";
static const char size_2_out[] = "     2000000             0     float     sum      -1  4000.00    "
                                 "0.50    0.75     N/A";

/* The second size of the sweep in place is under way when it ends. */
Test(bench_files, the_format_of_nccl_has_the_rows_of_a_sweep_that_ended_early)
{
    struct bench_sweep sweeps[2] = {sweep_of_two(), sweep_of_two()};
    struct bench_options in_place = options;
    char *text;

    sweeps[1].options = &in_place;
    in_place.call.in_place = true;
    sweeps[0].complete = true;
    sweeps[1].size_count = 1;
    text = nccl_lines(&sweeps[0]);
    cr_expect_str_empty(text, "those in place are to come");
    free(text);
    text = nccl_lines(&sweeps[1]);
    cr_expect(strstr(text, size_1_out), "%s", text);
    cr_expect(strstr(text, "1000.00    1.00    1.50       0  1000.00    1.00    1.50       0\n"));
    cr_expect(strstr(text, size_2_out), "%s", text);
    cr_expect(strstr(text, "0.75     N/A      N/A     N/A     N/A     N/A\n"), "%s", text);
    cr_expect_null(strstr(text, "OK"), "it is not known: %s", text);
    cr_expect_null(strstr(text, "concluded"), "%s", text);
    free(text);
    sweeps[0].complete = false;
    sweeps[0].size_count = 1;
    text = nccl_lines(&sweeps[0]);
    cr_expect(strstr(text, size_1_out), "there will be none in place: %s", text);
    cr_expect(strstr(text, "0      N/A     N/A     N/A     N/A\n"), "%s", text);
    cr_expect_null(strstr(text, size_2_out), "%s", text);
    free(text);
}

Test(bench_files, medians_and_ratios)
{
    double odd[] = {5, 1, 3};
    double even[] = {4, 1, 3, 2};
    struct bench_sweep sweep = sweep_of_two();

    cr_expect_eq(bench_median(odd, 3), 3);
    cr_expect_eq(bench_median(even, 4), 2.5);
    cr_expect_eq(bench_ratio(&sweep.sizes[0], 1), 2);
    cr_expect_eq(bench_ratio(&sweep.sizes[1], 1), 0, "there is nothing to compare with");
}
