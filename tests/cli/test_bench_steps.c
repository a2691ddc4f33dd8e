/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_steps.c - what `rondo bench` measures besides collectives one after another: pairs,
 * opening, calls beside computing, on several communicators, on several buffers, of a file.
 */
#include "tests/cli/bench_run.h"

#include "cli/bench/report.h"
#include "cli/bench/steps.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEAR(a, b) ((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

/* A file with this text; unlink() it. */
static const char *file_of(const char *text)
{
    static char path[64];
    int file;

    snprintf(path, sizeof(path), "/tmp/test-bench-XXXXXX");
    file = mkstemp(path);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    return path;
}

/* The rows of a sweep, which is right; json_decref() them. */
static json_t *rows_of(const char *line)
{
    char path[] = "/tmp/test-bench-XXXXXX", full[512];
    struct run *run;
    json_t *all, *rows;

    close(mkstemp(path));
    snprintf(full, sizeof(full), "%s --rounds 2 --seconds 0.01 --timeout 600 --json %s", line,
             path);
    run = bench(TEST_WORKERS, full);
    cr_assert_eq(run->status, 0, "%s: %s", line, run->err);
    cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", line, run->out);
    all = json_load_file(path, 0, NULL);
    rows = json_incref(json_object_get(all, "rows"));
    cr_assert_gt(json_array_size(rows), 0, "%s", line);
    json_decref(all);
    unlink(path);
    free(run);
    return rows;
}

static double number(json_t *rows, size_t row, const char *name)
{
    return json_number_value(json_object_get(json_array_get(rows, row), name));
}

/* The reason stands on stderr. */
static void expect_refused(const char *line, const char *sentence)
{
    struct run *run = bench(TEST_WORKERS, line);

    cr_expect_eq(run->status, 2, "%s: %s", line, run->err);
    cr_expect(strstr(run->err, sentence), "%s: %s", line, run->err);
    free(run);
}

Test(bench_steps, ranks_are_paired_with_those_of_the_other_half)
{
    cr_expect_eq(bench_partner(0, 4), 2);
    cr_expect_eq(bench_partner(3, 4), 1);
    cr_expect_eq(bench_partner(1, 5), 3);
    cr_expect_eq(bench_partner(4, 5), -1, "the last of an odd number");
    cr_expect_eq(bench_partner(0, 1), -1);
    cr_expect_eq(bench_pair_source(BENCH_LATENCY, 0, 2), 1);
    cr_expect_eq(bench_pair_source(BENCH_BANDWIDTH, 0, 2), -1, "who sends gets an answer only");
    cr_expect_eq(bench_pair_source(BENCH_BANDWIDTH, 1, 2), 0);
    cr_expect(NEAR(bench_message_rate(BENCH_LATENCY, 1e-6, 5), 2e6));
    cr_expect(NEAR(bench_message_rate(BENCH_BIDIRECTIONAL, 1e-6, 2), 2e6));
}

Test(bench_steps, pairs_have_a_rate_of_messages_that_fits_their_time)
{
    static const char *const lines[] = {
        "latency -n 2 --bytes 8,99999", "bandwidth -n 5 --threads --bytes 4,99999",
        "bidirectional -n 2 --memory shared --bytes 8,99999",
        "bandwidth -n 3 --memory registered --dtype int8 --bytes 1,99999"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        json_t *rows = rows_of(lines[i]);

        for (size_t row = 0; row < json_array_size(rows); row++) {
            int pairs = (int)number(rows, row, "ranks") / 2 * (i == 2 ? 2 : 1);
            double rate = pairs / number(rows, row, "median_us") * 1e6;
            double told = number(rows, row, "messages_per_s");

            cr_expect(told > 0.99 * rate && told < 1.01 * rate, "%s: %g, not %g", lines[i], told,
                      rate);
        }
        json_decref(rows);
    }
}

Test(bench_steps, wrong_values_of_pairs_are_found)
{
    struct run *run;

    setenv("TEST_BENCH_FAULT", "corrupt", 1);
    run = bench(TEST_FAULTY, "latency -n 2 --bytes 64 --iterations 2 --rounds 1");
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, "wrong values"), "%s", run->err);
    free(run);
}

Test(bench_steps, opening_has_times_and_memory)
{
    json_t *rows = rows_of("dup,open -n 2");

    cr_expect_eq(json_array_size(rows), 2);
    for (size_t row = 0; row < json_array_size(rows); row++) {
        cr_expect_gt(number(rows, row, "median_us"), 0);
        cr_expect_gt(number(rows, row, "rank_bytes"), 4096);
        cr_expect_gt(number(rows, row, "communicator_bytes"), 4096);
    }
    json_decref(rows);
}

Test(bench_steps, calls_beside_computing_tell_what_was_hidden)
{
    json_t *rows = rows_of("all_reduce,sendrecv,broadcast -n 2 --overlap --bytes 8,64K");

    cr_expect_eq(json_array_size(rows), 6);
    for (size_t row = 0; row < json_array_size(rows); row++) {
        cr_expect_gt(number(rows, row, "pure_us"), 0);
        cr_expect_gt(number(rows, row, "compute_us"), 0);
        cr_expect_geq(number(rows, row, "overlap"), 0);
        cr_expect_leq(number(rows, row, "overlap"), 1);
    }
    json_decref(rows);
}

Test(bench_steps, calls_on_several_communicators_and_buffers_are_right)
{
    json_t *rows = rows_of("all_reduce,all_gather,barrier -n 3 --communicators 5 --bytes 12,60000");

    cr_expect_eq(json_array_size(rows), 5);
    cr_expect_eq(number(rows, 0, "communicators"), 5);
    json_decref(rows);
    rows = rows_of("reduce_scatter -n 2 --threads --communicators 3 --bytes 64 --in-place");
    json_decref(rows);
    rows = rows_of("all_reduce -n 2 --buffers 7 --bytes 8,100000");
    cr_expect_eq(number(rows, 1, "buffers"), 7);
    json_decref(rows);
}

Test(bench_steps, every_peer_answers_or_says_why_not)
{
    char peers[] = TEST_PEERS, line[512];
    char *rest = peers, *peer;

    while ((peer = strtok_r(rest, ",", &rest))) {
        static const char *const questions[] = {"latency,bandwidth,bidirectional,dup",
                                                "all_reduce --overlap", "all --communicators 3"};

        for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
            snprintf(line, sizeof(line), "%s -n 2 --bytes 20000 --iterations 1 --warmup 1 --vs %s",
                     questions[i], peer);
            json_decref(rows_of(line));
        }
    }
}

/* ---- Traces ---------------------------------------------------------------------------------- */

Test(bench_steps, a_trace_is_read_line_by_line)
{
    const char *path = file_of("# a step\n\ncompute 1.5\nall_reduce 1K\n"
                               "broadcast 30 int16 sum 1 # rooted\n all_gather 64 uint8\n");
    static struct bench_trace trace;

    cr_assert_eq(bench_trace_read(path, &trace), 0);
    unlink(path);
    cr_assert_eq(trace.count, 4);
    cr_expect_eq(trace.calls, 3);
    cr_expect_eq(trace.lines[0].collective, -1);
    cr_expect(NEAR(trace.lines[0].seconds, 1.5e-6));
    cr_expect_eq(trace.lines[1].collective, BENCH_ALL_REDUCE);
    cr_expect_eq(trace.lines[1].count, 1024);
    cr_expect_eq(trace.lines[1].type, RONDO_FLOAT32);
    cr_expect_eq(trace.lines[2].type, RONDO_INT16);
    cr_expect_eq(trace.lines[2].root, 1);
    cr_expect_eq(bench_trace_bytes(&trace, 3), 1024 + 30 + 63, "whole blocks of three ranks");
}

Test(bench_steps, a_line_of_a_trace_may_have_a_long_comment)
{
    char text[1024];
    static struct bench_trace trace;
    const char *path;

    snprintf(text, sizeof(text), "all_reduce 1K # %0800d\nbroadcast 30\n", 7);
    path = file_of(text);
    cr_expect_eq(bench_trace_read(path, &trace), 0);
    unlink(path);
    cr_expect_eq(trace.calls, 2);
}

Test(bench_steps, a_trace_that_is_wrong_is_refused_with_its_line)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"all_reduce 8\nall_reduse 8\n", "line 2: there is no collective 'all_reduse', did you"},
        {"all_reduce\n", "bytes of its full vector"},
        {"all_reduce 8 float33\n", "no type 'float33'"},
        {"all_reduce 8 float32 summ\n", "no operation 'summ'"},
        {"all_reduce 8 float32 band\n", "float types have no operation 'band'"},
        {"broadcast 8 float32 sum -1\n", "the root is a rank"},
        {"broadcast 8 float32 sum 7\n", "root 7, which is not among the 2 ranks"},
        {"compute\nall_reduce 8\n", "behind compute are microseconds"},
        {"compute 5\n", "has no calls"},
        {"all_reduce 8 float32 sum 0 1\n", "at most five words"},
        {"latency 8\n", "no collective 'latency'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = file_of(cases[i].text);
        char line[128];

        snprintf(line, sizeof(line), "--trace %s -n 2", path);
        expect_refused(line, cases[i].sentence);
        unlink(path);
    }
    expect_refused("--trace /nowhere/at/all -n 2", "cannot read /nowhere/at/all");
}

Test(bench_steps, the_calls_of_a_trace_are_right_one_by_one_and_in_the_background)
{
    const char *path =
        file_of("compute 50\nall_reduce 4K\nbroadcast 999 int8 sum 1\n"
                "reduce_scatter 8K float64 max\nbarrier 0\nall_reduce 64K bfloat16\n");
    char line[256];
    json_t *rows;

    snprintf(line, sizeof(line), "--trace %s -n 3", path);
    rows = rows_of(line);
    cr_expect_eq(json_array_size(rows), 1);
    cr_expect_eq(number(rows, 0, "count"), 5);
    cr_expect_eq(number(rows, 0, "bytes"), 4096 + 999 + 8184 + 65536);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "trace")),
                     strrchr(path, '/') + 1);
    json_decref(rows);
    snprintf(line, sizeof(line), "--trace %s -n 2 --overlap --buffers 2", path);
    rows = rows_of(line);
    cr_expect_geq(number(rows, 0, "compute_us"), 40, "it computes for 50 us");
    json_decref(rows);
    unlink(path);
}

/* The average of seventeen is no number of eight bits. */
Test(bench_steps, a_trace_is_checked_only_if_all_its_results_are_exact)
{
    const char *path = file_of("all_reduce 68 int32\nall_reduce 34 float8_e4m3 avg\n");
    char line[256];
    struct run *run;

    snprintf(line, sizeof(line), "--trace %s -n 17 --threads --iterations 1 --rounds 1", path);
    run = bench(TEST_WORKERS, line);
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, " N/A "), "%s", run->out);
    cr_expect(strstr(run->out, "wrong values: not checked"), "%s", run->out);
    unlink(path);
    free(run);
}

Test(bench_steps, traces_of_models_that_come_with_rondo_are_traces)
{
    static const struct {
        const char *path;
        size_t parameters;
    } models[] = {{TEST_TRACES "/resnet50.trace", 25557032},
                  {TEST_TRACES "/gpt2.trace", 124439808}};
    static struct bench_trace trace;

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        cr_assert_eq(bench_trace_read(models[i].path, &trace), 0);
        cr_expect_eq(bench_trace_bytes(&trace, 2), models[i].parameters * 4, "all gradients, once");
    }
}

/* ---- A count for each rank ------------------------------------------------------------------- */

Test(bench_steps, calls_with_a_count_for_each_rank_are_right_in_every_library_that_has_them)
{
    json_t *rows = rows_of("all_gather_v,reduce_scatter_v,all_to_all_v -n 3 --bytes 12,1K,300K "
                           "--dtype int32,float64 --vs " TEST_PEERS);
    size_t peers = 1, known = 0;

    for (const char *at = TEST_PEERS; *at; at++)
        peers += *at == ',';
    cr_expect_eq(json_array_size(rows), (3 * 3 + 3 * 2) * (peers + 1),
                 "12 B are less than three doubles");
    for (size_t i = 0; i < json_array_size(rows); i++)
        known += json_is_true(json_object_get(json_array_get(rows, i), "available"));
    cr_expect_eq(known, (3 * 3 + 3 * 2) * (peers + 1 - !!strstr(TEST_PEERS, "gloo")),
                 "all but Gloo have them");
    json_decref(rows);
    rows = rows_of("all_gather_v,reduce_scatter_v -n 2 --bytes 4K --in-place --memory shared");
    cr_expect_eq(json_array_size(rows), 2);
    json_decref(rows);
}

Test(bench_steps, wrong_values_of_calls_with_counts_are_found)
{
    static const char *const names[] = {"all_gather_v", "reduce_scatter_v", "all_to_all_v"};

    setenv("TEST_BENCH_FAULT", "corrupt", 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char line[128];
        struct run *run;

        snprintf(line, sizeof(line), "%s -n 3 --bytes 600 --iterations 2 --rounds 1", names[i]);
        run = bench(TEST_FAULTY, line);
        cr_expect_eq(run->status, 1, "%s: %s", line, run->err);
        cr_expect(strstr(run->err, "wrong values"), "%s: %s", line, run->err);
        free(run);
    }
}

Test(bench_steps, what_is_made_of_messages_ran_by_no_algorithm)
{
    json_t *rows = rows_of("all_gather_v,reduce_scatter_v,all_to_all_v,sendrecv -n 2 --bytes 4K");

    cr_assert_eq(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(json_is_string(json_object_get(json_array_get(rows, i), "ran")), i < 2,
                     "row %zu", i);
    json_decref(rows);
}

/* ---- What does not go together --------------------------------------------------------------- */

Test(bench_steps, what_does_not_go_together_is_refused)
{
    expect_refused("latency -n 1", "it takes two");
    expect_refused("trace -n 2", "--trace FILE");
    expect_refused("dup -n 2 --overlap", "not for dup");
    expect_refused("latency -n 2 --communicators 2", "not for latency");
    expect_refused("all_reduce -n 2 --overlap --communicators 2", "goes with neither");
    expect_refused("all_reduce -n 2 --overlap --rewrite", "go with none");
    expect_refused("all_to_all_v -n 2 --in-place", "all_to_all_v cannot be called in place");
    expect_refused("all_gather_v -n 2 --algo ring", "ring has no form of all_gather_v");
    expect_refused("latncy -n 2", "did you mean 'latency'");
}

Test(bench_steps, all_are_the_collectives_and_no_other_question)
{
    struct run *run = bench(TEST_WORKERS, "all -n 2 --bytes 64 --iterations 1 --rounds 1 --csv -");
    int rows = 0;

    cr_expect_eq(run->status, 0, "%s", run->err);
    for (const char *at = run->out; (at = strstr(at, "\nrondo,")); at++)
        rows++;
    cr_expect_eq(rows, BENCH_COLLECTIVES);
    cr_expect_not(strstr(run->out, "\nrondo,latency"), "%s", run->out);
    free(run);
}
