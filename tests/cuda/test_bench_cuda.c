/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_cuda.c - `rondo bench --memory cuda` as a user runs it, on the stand-in of the driver:
 * short sweeps, beside a library with NCCL's interface, and without a driver.
 */
#include "tests/cli/bench_run.h"

#include "bench/collective.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect_right(const char *line)
{
    struct run *run = bench(TEST_WORKERS, line);

    cr_expect_eq(run->status, 0, "%s: %s", line, run->err);
    cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", line, run->out);
    free(run);
}

static void expect_every_collective(const char *options)
{
    for (int i = 0; i < BENCH_COLLECTIVES; i++)
        for (int in_place = 0; in_place <= bench_collective_has_in_place((enum bench_collective)i);
             in_place++) {
            char line[256];

            snprintf(line, sizeof(line),
                     "%s -n 3 --root 1 --memory cuda --bytes 24,20000 --iterations 3 --rounds 1 "
                     "%s%s",
                     bench_collective_name((enum bench_collective)i), options,
                     in_place ? " --in-place" : "");
            expect_right(line);
        }
}

Test(bench_cuda, every_collective_of_processes_is_right)
{
    expect_every_collective("");
}

Test(bench_cuda, every_collective_of_threads_is_right)
{
    expect_every_collective("--threads");
}

Test(bench_cuda, calls_with_a_count_for_each_rank_are_right)
{
    expect_right("all_gather_v,reduce_scatter_v,all_to_all_v -n 3 --memory cuda "
                 "--bytes 24,20000 --iterations 3 --rounds 1");
    expect_right("all_gather_v,reduce_scatter_v -n 2 --memory cuda --bytes 24,20000 "
                 "--iterations 3 --rounds 1 --in-place --blocking");
}

Test(bench_cuda, calls_may_be_blocking_or_come_from_graphs)
{
    static const char *const ways[] = {"--blocking", "--graph", "--graph --threads",
                                       "--rewrite --cold", "--threads --blocking"};

    setenv("CUDA_STANDIN_MEMORY", "8589934592", 1);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char line[256];

        snprintf(line, sizeof(line),
                 "all_reduce -n 2 --memory cuda --bytes 64K --iterations 20 --rounds 1 %s",
                 ways[i]);
        expect_right(line);
    }
}

Test(bench_cuda, calls_on_several_communicators_are_right)
{
    expect_right("all_reduce,all_gather -n 2 --memory cuda --bytes 64,20000 --iterations 3 "
                 "--rounds 1 --communicators 3");
    expect_right("all_reduce -n 2 --threads --memory cuda --bytes 20000 --iterations 3 --rounds 1 "
                 "--communicators 2 --blocking");
}

static void expect_wrong(const char *fault, const char *line)
{
    struct run *run;

    setenv("TEST_BENCH_FAULT", fault, 1);
    run = bench(TEST_FAULTY, line);
    cr_expect_eq(run->status, 1, "%s: %s", line, run->err);
    cr_expect(strstr(run->err, "wrong values of rondo"), "%s: %s", line, run->err);
    free(run);
}

/* One by one they are right. */
Test(bench_cuda, values_of_calls_on_several_communicators_and_of_graphs_are_checked)
{
    expect_wrong("begun", "all_reduce -n 2 --memory cuda --bytes 400 --iterations 1 --rounds 1 "
                          "--communicators 2");
    expect_wrong("later", "all_reduce -n 2 --memory cuda --bytes 400 --iterations 1 --rounds 1 "
                          "--graph");
}

Test(bench_cuda, tables_and_files_say_what_was_measured)
{
    char path[] = "/tmp/test-bench-XXXXXX";
    char line[256];
    struct run *run;

    close(mkstemp(path));
    snprintf(line, sizeof(line),
             "all_reduce -n 2 --memory cuda --bytes 8,4K --seconds 0.01 --csv %s --limit", path);
    setenv("CUDA_STANDIN_MEMORY", "1073741824", 1);
    run = bench(TEST_WORKERS, line);
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "2 ranks (processes), memory cuda, out of place"), "%s", run->out);
    cr_expect(strstr(run->out, "# limit: an empty launch takes "), "%s", run->out);
    cr_expect(strstr(run->out, "vectors of 16 MiB"), "%s", run->out);
    /* On a busy machine both sizes may be left out of the mean. */
    cr_expect(strstr(run->out, "% of limit, of rondo: geometric mean") ||
                  strstr(run->out, "# ~ marks 2 of 2 sizes"),
              "%s", run->out);
    cr_expect_eq(lines_of(path, "rondo,all_reduce,auto,2,4096,float32,sum,cuda,0,"), 1);
    cr_expect_eq(lines_of(path, "limit,all_reduce,auto,2,4096,float32,sum,cuda,0,"), 1);
    unlink(path);
    free(run);
}

Test(bench_cuda, only_collectives_have_a_limit)
{
    struct run *run;

    setenv("CUDA_STANDIN_MEMORY", "1073741824", 1);
    run = bench(TEST_WORKERS, "bandwidth,dup -n 2 --memory cuda --bytes 4K --iterations 1 "
                              "--rounds 1 --limit");
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->err, "limit is left out: only collectives"), "%s", run->err);
    cr_expect_not(strstr(run->out, "% of limit, of"), "%s", run->out);
    free(run);
}

Test(bench_cuda, the_least_traffic_is_that_of_inputs_and_outputs)
{
    static const struct {
        enum bench_collective collective;
        bool in_place;
        size_t root, other; /* bytes, of two floats and three ranks */
    } cases[] = {
        {BENCH_ALL_REDUCE, false, 16, 16}, {BENCH_ALL_REDUCE, true, 16, 16},
        {BENCH_REDUCE, false, 16, 8},      {BENCH_BROADCAST, false, 16, 8},
        {BENCH_BROADCAST, true, 8, 8},     {BENCH_ALL_GATHER, false, 32, 32},
        {BENCH_ALL_GATHER, true, 24, 24},  {BENCH_REDUCE_SCATTER, false, 32, 32},
        {BENCH_ALL_TO_ALL, false, 48, 48}, {BENCH_ALL_TO_ALL, true, 32, 32},
        {BENCH_GATHER, false, 32, 8},      {BENCH_GATHER, true, 16, 8},
        {BENCH_SCATTER, false, 32, 8},     {BENCH_SCATTER, true, 16, 8},
        {BENCH_SENDRECV, false, 16, 16},   {BENCH_BARRIER, false, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench_call call = {.collective = cases[i].collective,
                                  .type = RONDO_FLOAT32,
                                  .root = 1,
                                  .count = 2,
                                  .in_place = cases[i].in_place};
        const char *name = bench_collective_name(call.collective);

        cr_expect_eq(bench_traffic(&call, 4, 1, 3), cases[i].root, "%s", name);
        cr_expect_eq(bench_traffic(&call, 4, 2, 3), cases[i].other, "%s", name);
    }
}

Test(bench_cuda, without_a_driver_there_is_a_sentence)
{
    struct run *run;

    unsetenv("LD_LIBRARY_PATH");
    run = bench("/nowhere", "all_reduce -n 2 --memory cuda --vs gloo");
    cr_expect_eq(run->status, 2);
    cr_expect(strstr(run->err, "on device memory --vs knows nccl only, not 'gloo'"), "%s",
              run->err);
    free(run);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    run = bench(TEST_WORKERS, "all_reduce -n 2 --memory cuda --bytes 8");
    cr_expect_eq(run->status, 1, "%s", run->out);
    cr_expect(strstr(run->err, " of rondo: GPU memory needs NVIDIA's driver") ||
                  strstr(run->err, "NVIDIA's driver finds no GPU") ||
                  strstr(run->err, "does not start"),
              "%s", run->err);
    free(run);
}

Test(bench_cuda, nccl_is_for_device_memory)
{
    struct run *run = bench(TEST_WORKERS, "all_reduce -n 2 --vs nccl");

    cr_expect_eq(run->status, 2);
    cr_expect(strstr(run->err, "--vs nccl needs --memory cuda"), "%s", run->err);
    free(run);
}

/* Ours stands in for NCCL's. */
Test(bench_cuda, a_library_with_the_interface_of_nccl_is_measured_and_right)
{
    static const char *const ways[] = {"", "--threads", "--graph", "--in-place --root 1"};

    for (int i = 0; i < BENCH_COLLECTIVES; i++) {
        bool lacks = i == BENCH_BARRIER || (i == BENCH_ALL_TO_ALL && strstr(ways[i % 4], "place"));
        bool in_place = bench_collective_has_in_place((enum bench_collective)i);
        char line[512];
        struct run *run;

        snprintf(line, sizeof(line),
                 "%s -n 2 --memory cuda --bytes 64,20000 --iterations 3 --rounds 1 --vs nccl "
                 "--nccl %s %s",
                 bench_collective_name((enum bench_collective)i), TEST_NCCL,
                 in_place || !strstr(ways[i % 4], "place") ? ways[i % 4] : "");
        run = bench(TEST_WORKERS, line);
        cr_expect_eq(run->status, 0, "%s: %s", line, run->err);
        cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", line, run->out);
        cr_expect(strstr(run->out, "NCCL 2."), "%s: %s", line, run->out);
        cr_expect_eq(strstr(run->err, "nccl is left out: NCCL ") != NULL, lacks, "%s: %s", line,
                     run->err);
        free(run);
    }
}

Test(bench_cuda, a_missing_nccl_is_explained)
{
    struct run *run =
        bench(TEST_WORKERS, "all_reduce -n 2 --memory cuda --bytes 8 --vs nccl --nccl /nowhere.so");

    cr_expect_eq(run->status, 1);
    cr_expect(strstr(run->err, "NCCL cannot be loaded (/nowhere.so: "), "%s", run->err);
    free(run);
}
