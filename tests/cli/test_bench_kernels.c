/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_kernels.c - timing the kernels: rows, files; its command line is in test_bench.c. */
#include "cli/bench/kernels/kernels.h"

#include "tests/cli/written.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kernels_options options = {
    .bench = {.call = {.type = RONDO_INT16, .op = RONDO_AVG}, .size_count = 1}};

Test(bench_kernels, every_number_of_sources_has_a_speed_beside_that_of_a_copy)
{
    const size_t bytes = 1000;
    unsigned char *arena = kernels_arena(bytes);

    cr_assert(arena);
    memset(arena, 1, bytes);
    for (int i = 0; i < KERNELS_SOURCES; i++) {
        struct bench_record record =
            kernels_time(&options, arena, RONDO_INT16, bytes, kernels_sources[i]);

        cr_expect_gt(record.GBps, 0);
        cr_expect_gt(record.copy_GBps, 0);
        cr_expect_float_eq(record.percent_of_copy, 100 * record.GBps / record.copy_GBps, 1e-9);
        cr_expect_eq(record.sources, kernels_sources[i]);
    }
    cr_expect_eq(arena[0], 0x3c, "the average of equal sources is the source");
    free(arena);
}

Test(bench_kernels, more_memory_than_there_is_is_none)
{
    cr_expect_null(kernels_arena(SIZE_MAX / 2));
}

#define RECORD(of, speed, copy, percent)                                                \
    {                                                                                   \
        .level = "avx2", .dtype = "float32", .op = "avg", .bytes = 4096, .sources = of, \
        .GBps = speed, .copy_GBps = copy, .percent_of_copy = percent                    \
    }

static struct bench_record one_line[1][KERNELS_SOURCES] = {
    {RECORD(2, 1, 2, 50), RECORD(4, 3, 2, 150), RECORD(8, 2, 4, 50)}};

Test(bench_kernels, csv_has_a_line_per_number_of_sources)
{
    struct kernels_result result = {&options, one_line, 1, true};
    char *text;

    options.bench.csv = written_path();
    cr_assert(!kernels_write(&result));
    text = written_take(options.bench.csv);
    written_cut_machine(text);
    cr_expect_str_eq(text, "level,dtype,op,bytes,sources,GBps,copy_GBps,percent_of_copy\n"
                           "avx2,float32,avg,4096,2,1.0000,2.0000,50.00\n"
                           "avx2,float32,avg,4096,4,3.0000,2.0000,150.00\n"
                           "avx2,float32,avg,4096,8,2.0000,4.0000,50.00\n");
    free(text);
}

Test(bench_kernels, a_table_that_ended_early_is_drawn_without_what_was_not_measured)
{
    static struct bench_record lines[4][KERNELS_SOURCES];
    struct kernels_options two = {
        .bench = {.call = options.bench.call, .sizes = {4096, 8192}, .size_count = 2}};
    struct kernels_result result = {&two, lines, 3, false};
    char *text;

    if (system("gnuplot --version >/dev/null 2>&1"))
        cr_skip_test("gnuplot is not installed");
    for (int i = 0; i < 3; i++)
        memcpy(lines[i], one_line[0], sizeof(lines[i]));
    for (int k = 0; k < KERNELS_SOURCES; k++)
        lines[1][k].dtype = "float64";
    lines[2][1].percent_of_copy = 77;
    lines[3][1].percent_of_copy = 66; /* room for a line that was not measured */
    two.bench.plot = "/tmp/test-bench-kernels.svg";
    cr_assert(!kernels_write(&result));
    text = written_take(two.bench.plot);
    cr_expect(strstr(text, "avx2, float64") && strstr(text, "4 x 8K") && strstr(text, ">77<"));
    cr_expect_null(strstr(text, ">66<"));
    free(text);
}

Test(bench_kernels, json_has_the_machine_and_the_same_rows)
{
    struct kernels_result result = {&options, one_line, 1, true};
    json_error_t error;
    json_t *all;
    json_t *row;
    char *text;

    options.bench.json = written_path();
    cr_assert(!kernels_write(&result));
    text = written_take(options.bench.json);
    all = json_loads(text, 0, &error);
    free(text);
    cr_assert(all, "%s", error.text);
    cr_expect(json_is_object(json_object_get(all, "machine")));
    cr_expect_eq(json_array_size(json_object_get(all, "rows")), 3);
    cr_expect(json_is_true(json_object_get(all, "complete")));
    row = json_array_get(json_object_get(all, "rows"), 1);
    cr_expect_eq(json_integer_value(json_object_get(row, "sources")), 4);
    cr_expect_float_eq(json_real_value(json_object_get(row, "percent_of_copy")), 150, 1e-6);
    json_decref(all);
}
