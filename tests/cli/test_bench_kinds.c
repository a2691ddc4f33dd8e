/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_kinds.c - what else `rondo bench` measures, as a user runs it: the machine's limit,
 * the matrix, the kernels; and wrong usage of each.
 */
#include "tests/cli/bench_run.h"

#include "cli/bench/report.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every branch of the limit: lines of flags, zero copy, more ranks than cores, in place. */
Test(bench_kinds, the_limit_of_every_collective_is_measured_and_right)
{
    for (int i = 0; i < BENCH_COLLECTIVES; i++)
        for (int in_place = 0; in_place <= bench_collective_has_in_place((enum bench_collective)i);
             in_place++) {
            bool lacks = i == BENCH_ALL_TO_ALL && in_place; /* it needs a copy of the input */
            char line[256];
            struct run *run;

            snprintf(line, sizeof(line),
                     "%s -n 3 --threads --root 1 --bytes 24,900,99999 --iterations 3 --rounds 1 "
                     "--limit%s",
                     bench_collective_name((enum bench_collective)i),
                     in_place ? " --in-place" : "");
            run = bench(TEST_WORKERS, line);
            cr_expect_eq(run->status, 0, "%s: %s", line, run->err);
            cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", line, run->out);
            cr_expect_eq(strstr(run->out, "% of limit, of rondo") == NULL, lacks, "%s: %s", line,
                         run->out);
            free(run);
        }
}

Test(bench_kinds, the_limit_has_rows_of_its_own_and_no_place_for_other_reductions)
{
    char path[] = "/tmp/test-bench-XXXXXX";
    char line[256];
    struct run *run;

    close(mkstemp(path));
    snprintf(line, sizeof(line), "all_reduce -n 9 --bytes 8,64K --seconds 0.01 --limit --csv %s",
             path);
    run = bench(TEST_WORKERS, line);
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect_eq(lines_of(path, BENCH_CSV_HEADER), 1);
    cr_expect_eq(lines_of(path, "limit,all_reduce,auto,9,"), 2);
    unlink(path);
    free(run);
    run = bench(TEST_WORKERS, "all_reduce -n 2 --op max --bytes 8 --seconds 0.01 --limit");
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->err, "only the float32 sum has a limit"), "%s", run->err);
    free(run);
}

Test(bench_kinds, the_matrix_has_a_row_per_collective_memory_and_place)
{
    struct run *run = bench(TEST_WORKERS, "matrix --collectives broadcast,all_gather --bytes 64,4K "
                                          "--vs openmpi --limit --passes 2 --rounds 1 "
                                          "--seconds 0 --place out");

    if (!strstr(TEST_PEERS, "openmpi"))
        cr_skip_test("Open MPI is not there");
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "broadcast, host, out of place"), "%s", run->out);
    cr_expect(strstr(run->out, "all_gather, shared, out of place"), "%s", run->out);
    cr_expect_null(strstr(run->out, "in place"), "%s", run->out);
    cr_expect(strstr(run->out, "limit: a cache line crosses"), "%s", run->out);
    cr_expect(strstr(run->out, "faster than the best peer: "), "%s", run->out);
    cr_expect(strstr(run->out, " of 8 cells"), "%s", run->out);
    free(run);
}

/* Lines of a file that begin so, and have this behind it. */
static int lines_with(const char *path, const char *begin, const char *rest)
{
    FILE *file = fopen(path, "re");
    char line[1024];
    int count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += !strncmp(line, begin, strlen(begin)) && strstr(line, rest);
    if (file)
        fclose(file);
    return count;
}

/* The first row is on stdout, and the last one would come much later. */
Test(bench_kinds, an_interrupted_matrix_keeps_the_cells_that_are_known)
{
    char path[] = "/tmp/test-bench-XXXXXX", line[256];
    struct run *run;

    close(mkstemp(path));
    snprintf(line, sizeof(line),
             "matrix --bytes 64 --vs openmpi --passes 1 --rounds 2 --seconds 1 --memory host "
             "--place out --csv %s",
             path);
    if (!strstr(TEST_PEERS, "openmpi"))
        cr_skip_test("Open MPI is not there");
    run = run_begin(TEST_WORKERS, line);
    cr_expect(run_await(run, "all_reduce, host, out of place"), "%s", run->err);
    kill(run->pid, SIGINT);
    run_finish(run);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, "ends because of signal 2"), "%s", run->err);
    cr_expect(strstr(run->err, "the matrix ended early"), "%s", run->err);
    cr_expect(strstr(run->out, "faster than the best peer: "), "%s", run->out);
    cr_expect(strstr(run->out, "reduce_scatter, host, out of place"), "%s", run->out);
    cr_expect_eq(lines_with(path, "all_reduce,host,0,2,float32,64,openmpi,", ","), 1);
    cr_expect_eq(lines_with(path, "reduce_scatter,host,0,2,float32,64,,,,,,", "Rondo"), 1);
    unlink(path);
    free(run);
}

Test(bench_kinds, a_wrong_value_leaves_its_cell_of_the_matrix_empty)
{
    char path[] = "/tmp/test-bench-XXXXXX", line[256];
    struct run *run;

    close(mkstemp(path));
    setenv("TEST_BENCH_FAULT", "corrupt", 1);
    snprintf(line, sizeof(line),
             "matrix --collectives all_reduce,all_gather --bytes 64 --passes 2 --rounds 1 "
             "--seconds 0 --memory host --place out --csv %s",
             path);
    run = bench(TEST_FAULTY, line);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, "2 wrong values of rondo in all_reduce, host, out of place"), "%s",
              run->err);
    cr_expect(strstr(run->err, "2 wrong values of rondo in all_gather, host, out of place"), "%s",
              run->err);
    cr_expect_eq(lines_with(path, "all_reduce,host,0,2,float32,64,,,,,", "Rondo"), 1);
    unlink(path);
    free(run);
}

Test(bench_kinds, kernels_are_timed_at_the_level_and_type_that_is_asked_for)
{
    struct run *run = bench(TEST_WORKERS, "kernels --level plain --dtype int8 --op bxor "
                                          "--bytes 100,1K --seconds 0");

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "bxor of 1024 bytes"), "%s", run->out);
    cr_expect(strstr(run->out, "plain         int8 |"), "%s", run->out);
    free(run);
}

/* The first line is on stdout, and the last one would come much later. */
Test(bench_kinds, interrupted_kernels_keep_the_lines_that_are_done)
{
    char path[] = "/tmp/test-bench-XXXXXX", line[256];
    struct run *run;
    int rows = 0;

    close(mkstemp(path));
    snprintf(line, sizeof(line), "kernels --level plain --bytes 1K,2K --seconds 1 --csv %s", path);
    run = run_begin(TEST_WORKERS, line);
    cr_expect(run_await(run, "plain         int8 |"), "%s", run->err);
    kill(run->pid, SIGINT);
    run_finish(run);
    cr_expect_eq(run->status, 1, "%d: %s", run->status, run->err);
    cr_expect(strstr(run->err, "rondo bench kernels: ends because of signal 2"), "%s", run->err);
    cr_expect(strstr(run->err, "lines that were done are in /tmp/test-bench-"), "%s", run->err);
    cr_expect_eq(lines_of(path, "plain,int8,sum,1024,"), 3);
    for (const char *at = run->out; (at = strstr(at, " plain ")); at++)
        rows++;
    cr_expect_eq(lines_of(path, "plain,"), 3 * rows, "%s", run->out);
    unlink(path);
    free(run);
}

Test(bench_kinds, wrong_usage_is_status_2_with_a_sentence)
{
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"", "name one collective"},
        {"allreduce -n 2", "there is no collective 'allreduce', did you mean 'all_reduce'? there "
                           "are all_reduce, reduce, broadcast,"},
        {"all_reduce -n 2 --algo rign", "algorithm 'rign', did you mean 'ring'? there are auto,"},
        {"all_reduce -n 2 --op summ", "operation 'summ', did you mean 'sum'? there are sum, prod,"},
        {"all_reduce -n 2 --memory sharde", "did you mean 'shared'? there are host, shared,"},
        {"all_reduce -n 2 --set RONDO_SLOT=2", "did you mean 'RONDO_SLOTS'? there are RONDO_ALGO"},
        {"all_reduce -n 2 --set RONDO_SLOTS=2,x", "RONDO_SLOTS is 'x': accepted is a whole"},
        {"all_reduce -n 2 --transport shn", "RONDO_TRANSPORT is 'shn': accepted is one of auto,"},
        {"all_reduce -n 0", "-n is '0': accepted is a whole number from 1"},
        {"all_reduce -n 2 --bytes 8:4", "--bytes is LO:HI"},
        {"all_reduce -n 2 --dtype floa", "there is no type 'floa'"},
        {"all_reduce -n 2 --format ncll", "did you mean 'nccl'? there are table, nccl, osu"},
        {"all_reduce -n 2 --format nccl --vs mpich", "have room for one library"},
        {"all_reduce -n 2 --format nccl --overlap", "--format nccl goes with none of --overlap"},
        {"sendrecv -n 2 --format osu", "have nothing like sendrecv"},
        {"all_reduce -n 2 --memory cuda --graph --cold", "goes with none of --blocking, --rewrite"},
        {"all_reduce -n 2 --memory cuda --graph --buffers 17", "--graph repeats 16 calls"},
        {"all_reduce -n 2 -b 8:64 -e 1K", "-e needs -b with one size"},
        {"all_reduce -n 2 --op band", "band is for integers only"},
        {"reduce -n 2 --root 2", "--root 2 is not among the 2 ranks"},
        {"sendrecv -n 2 --in-place", "cannot be called in place"},
        {"all_reduce -n 2 --vs mpic", "did you mean 'mpich'? there are openmpi, mpich, gloo, nccl"},
        {"all_reduce -n 2 --only-peers", "--only-peers needs --vs"},
        {"all_reduce -n 2 --hosts 2 --enter ./enter --meet 10.0.0.1:5000 --vs gloo,mpich",
         "with --hosts 'mpich' would measure one host only"},
        {"all_reduce", "say how many ranks to start"},
        {"all_gather,scatter -n 4 --bytes 4,8", "less than one element per rank"},
        {"matrix --collectives all_gather -n 4 --bytes 8", "less than one element per rank"},
        {"matrix --collectives barrier", "there is no collective with a size 'barrier'"},
        {"matrix --memory hots", "did you mean 'host'? there are host, shared, both"},
        {"matrix --dtype float3", "did you mean 'float32'? there are int8,"},
        {"matrix all_reduce", "'all_reduce' is no option of the matrix"},
        {"kernels --level mmx", "this machine has no level 'mmx', but plain"},
        {"kernels --op maxx", "did you mean 'max'? there are sum,"},
        {"kernels --op band --dtype float32", "band is for integers only"},
        {"kernels all_reduce", "'all_reduce' is not an option"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run *run = bench(TEST_WORKERS, cases[i].line);

        cr_expect_eq(run->status, 2, "'%s' gives %d", cases[i].line, run->status);
        cr_expect(strstr(run->err, cases[i].sentence), "'%s': %s", cases[i].line, run->err);
        free(run);
    }
}
