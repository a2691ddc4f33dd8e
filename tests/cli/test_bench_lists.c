/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_lists.c - many runs out of one command line, and pictures of them. */
#include "cli/bench/report.h"

#include "cli/common/nearest.h"
#include "tests/cli/written.h"

#include <criterion/criterion.h>
#include <string.h>

/* The runs of a line of words; free() the list. */
static struct bench_runs runs_of(const char *line)
{
    static char copy[1024];
    char *words[32] = {(char *)"bench"}, *rest = NULL;
    struct bench_runs runs;
    int count = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    bench_options_parse(count, words, &runs);
    return runs;
}

Test(bench_lists, every_combination_is_a_run_and_algorithms_change_first)
{
    struct bench_runs runs = runs_of("all_reduce -n 2:8 --memory host,shared --algo ring,tree");

    cr_assert_eq(runs.count, 3 * 2 * 2);
    cr_expect_eq(runs.list[0].ranks, 2);
    cr_expect_str_eq(runs.list[0].call.algorithm, "ring");
    cr_expect_str_eq(runs.list[1].call.algorithm, "tree");
    cr_expect_eq(runs.list[1].memory, BENCH_MEMORY_HOST);
    cr_expect_eq(runs.list[2].memory, BENCH_MEMORY_SHARED);
    cr_expect_eq(runs.list[11].ranks, 8);
    cr_expect_eq(runs.left_out, 0);
    free(runs.list);
}

Test(bench_lists, one_run_is_as_it_always_was)
{
    struct bench_runs runs = runs_of("broadcast -n 4 --algo auto --dtype int8 --op max");

    cr_assert_eq(runs.count, 1);
    cr_expect_eq(runs.list[0].call.collective, BENCH_BROADCAST);
    cr_expect_eq(runs.list[0].ranks, 4);
    cr_expect_eq(runs.list[0].call.type, RONDO_INT8);
    cr_expect_eq(runs.list[0].call.op, RONDO_MAX);
    cr_expect_str_empty(runs.list[0].call.algorithm);
    cr_expect_str_empty(runs.list[0].settings);
    free(runs.list);
}

Test(bench_lists, settings_are_combined_and_named)
{
    struct bench_runs runs =
        runs_of("all_reduce -n 2 --set RONDO_SLOTS=2,8 --set RONDO_TRANSPORT=shm,tcp");

    cr_assert_eq(runs.count, 4);
    cr_expect_str_eq(runs.list[0].settings, "RONDO_SLOTS=2 RONDO_TRANSPORT=shm");
    cr_expect_str_eq(runs.list[1].settings, "RONDO_SLOTS=2 RONDO_TRANSPORT=tcp");
    cr_expect_str_eq(runs.list[3].settings, "RONDO_SLOTS=8 RONDO_TRANSPORT=tcp");
    free(runs.list);
}

Test(bench_lists, a_setting_may_be_as_long_as_a_path)
{
    char words[700], wanted[400], folder[300];
    struct bench_runs runs;

    memset(folder, 'f', sizeof(folder));
    folder[0] = '/';
    folder[sizeof(folder) - 1] = 0;
    snprintf(wanted, sizeof(wanted), "RONDO_RECORDER_DIR=%s", folder);
    snprintf(words, sizeof(words), "all_reduce -n 2 --set %s --set RONDO_SLOTS=2", wanted);
    runs = runs_of(words);
    cr_assert_eq(runs.count, 1);
    cr_expect(!strncmp(runs.list[0].settings, wanted, strlen(wanted)));
    free(runs.list);
}

Test(bench_lists, what_there_is_no_call_for_is_left_out_and_counted)
{
    struct bench_runs runs = runs_of("all_reduce -n 2 --dtype int32,float32 --op sum,band");

    cr_assert_eq(runs.count, 3);
    cr_expect_eq(runs.left_out, 1);
    free(runs.list);
    runs = runs_of("all_reduce,broadcast -n 2 --algo ring,doubling");
    cr_expect_eq(runs.count, 3, "doubling has no broadcast");
    free(runs.list);
    runs = runs_of("broadcast -n 2 --op sum,max");
    cr_expect_eq(runs.count, 1, "a broadcast has no operation");
    free(runs.list);
    runs = runs_of("broadcast -n 2 --op sum,max,min --algo ring,tree");
    cr_expect_eq(runs.count, 2, "nor has it one with several algorithms");
    free(runs.list);
    runs = runs_of("broadcast,reduce -n 2 --op sum,max --format nccl");
    cr_expect_eq(runs.count, 2 + 4, "nor out of place and in place");
    cr_expect(!runs.list[0].call.in_place && runs.list[1].call.in_place);
    free(runs.list);
    runs = runs_of("all_reduce,all_gather,barrier -n 4 --bytes 8");
    cr_expect_eq(runs.count, 2, "there is no element for each rank");
    cr_expect_eq(runs.left_out, 1);
    free(runs.list);
    runs = runs_of("all -n 2 --in-place");
    cr_expect_eq(runs.count, BENCH_COLLECTIVES - 2, "barrier and sendrecv have no such call");
    free(runs.list);
}

static const char *name(int i)
{
    static const char *const names[] = {"ring", "tree", "all_reduce", NULL};

    return names[i];
}

Test(bench_lists, the_nearest_name_is_the_one_with_the_fewest_edits)
{
    cr_expect_str_eq(nearest_name("rin", name), "ring");
    cr_expect_str_eq(nearest_name("allreduce", name), "all_reduce");
    cr_expect_str_eq(nearest_name("three", name), "tree");
    cr_expect_null(nearest_name("zzzz", name));
}

/* ---- Pictures ------------------------------------------------------------------------------- */

Test(bench_lists, a_picture_has_a_panel_per_collective_and_a_line_per_run)
{
    struct bench_runs runs = runs_of("all_reduce,broadcast -n 2,4 --algo ring,tree");
    static struct bench_size size = {.bytes = 4096};
    static struct bench_group group[2];
    struct bench_sweep list[8];
    struct bench_sweeps sweeps = {.list = list, .count = 8, .expected = 8};
    char text[16384] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    cr_assert_eq(runs.count, 8);
    size.results[0] = (struct bench_result){.available = true, .median = 1e-6, .min = 1e-6};
    for (int i = 0; i < 8; i++) {
        struct bench_group *of = &group[runs.list[i].ranks / 4];

        of->kind = &bench_kinds[BENCH_RONDO];
        of->size = runs.list[i].ranks;
        list[i] = (struct bench_sweep){
            .options = &runs.list[i], .groups = of, .sizes = &size, .size_count = 1};
    }
    bench_sweeps_plot(&sweeps, to);
    fclose(to);
    cr_expect(strstr(text, "set title 'all reduce'"), "%s", text);
    cr_expect(strstr(text, "set title 'broadcast'"), "%s", text);
    cr_expect(strstr(text, "title 'ring, 2 ranks'"), "%s", text);
    cr_expect(strstr(text, "title 'tree, 4 ranks'"), "%s", text);
    cr_expect(strstr(text, "$run7of0 << END\n4096 1 "), "time, bus bandwidth, then the band: %s",
              text);
    cr_expect_null(strstr(text, "redicted"), "nobody asked the model: %s", text);
    cr_expect(strstr(text, "$run7of0 using 1:4:5 with filledcurves"), "%s", text);
    cr_expect_null(strstr(text, "float32"), "all have the same type");
    free(runs.list);
}

/* A barrier has no size, and the first library may lack a call that another one has. */
Test(bench_lists, a_picture_goes_over_the_sizes_of_all_runs_that_have_points)
{
    struct bench_runs runs = runs_of("barrier,all_reduce,barrier,broadcast -n 2");
    static struct bench_group groups[2];
    static struct bench_size none, sizes[2] = {{.bytes = 4096}, {.bytes = 64}};
    struct bench_sweep list[4];
    struct bench_sweeps sweeps = {.list = list, .count = 1, .expected = 4};
    char text[16384] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    groups[0] = (struct bench_group){.kind = &bench_kinds[BENCH_RONDO], .size = 2};
    groups[1] = (struct bench_group){.kind = &bench_kinds[BENCH_MPICH], .size = 2};
    none.results[0].available = true;
    sizes[0].results[1] = (struct bench_result){.available = true, .median = 1e-6, .min = 1e-6};
    sizes[1].results[1] = sizes[0].results[1];
    for (int i = 0; i < 4; i++) {
        runs.list[i].libraries[1] = BENCH_MPICH;
        runs.list[i].library_count = 2;
        list[i] = (struct bench_sweep){.options = &runs.list[i],
                                       .groups = groups,
                                       .sizes = i == 1 ? sizes : &none,
                                       .size_count = i == 1 ? 2 : i < 3};
    }
    cr_expect_not(bench_sweeps_have_points(&sweeps), "a barrier alone");
    sweeps.count = 4;
    cr_expect(bench_sweeps_have_points(&sweeps));
    bench_sweeps_plot(&sweeps, to);
    fclose(to);
    cr_expect(strstr(text, "set xrange [42.6667:6144]\n"), "%s", text);
    cr_expect(strstr(text, "set multiplot layout 1,1\n"), "%s", text);
    cr_expect(strstr(text, "set title 'all reduce'"), "%s", text);
    cr_expect_null(strstr(text, "set title 'barrier'"), "%s", text);
    cr_expect_null(strstr(text, "set title 'broadcast'"), "it has not begun: %s", text);
    free(runs.list);
}

/* The dashed line has the colour of what was measured. */
Test(bench_lists, a_picture_has_what_was_predicted_of_each_algorithm)
{
    struct bench_runs runs = runs_of("all_reduce -n 2 --algo ring,tree");
    static struct bench_size size = {.bytes = 4096};
    static struct bench_group group = {.size = 2};
    struct bench_sweep list[2];
    struct bench_sweeps sweeps = {.list = list, .count = 2, .expected = 2};
    char text[16384] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");

    group.kind = &bench_kinds[BENCH_RONDO];
    size.results[0] =
        (struct bench_result){.available = true, .median = 1e-6, .min = 1e-6, .predicted = 2.5e-6};
    for (int i = 0; i < 2; i++)
        list[i] = (struct bench_sweep){
            .options = &runs.list[i], .groups = &group, .sizes = &size, .size_count = 1};
    bench_sweeps_plot(&sweeps, to);
    sweeps.expected = 1;
    bench_sweeps_plot(&sweeps, to);
    fclose(to);
    cr_expect(strstr(text, "all reduce (dashed: predicted by the cost model)"), "%s", text);
    cr_expect(strstr(text, " 2.5\nEND"), "%s", text);
    cr_expect(strstr(text, "$run1of0 using 1:6 with lines lw 1.5 dt 2 lc 2 notitle"), "%s", text);
    cr_expect(strstr(text, "title 'rondo, predicted'"), "of one run: %s", text);
    free(runs.list);
}
