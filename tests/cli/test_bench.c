/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench.c - `rondo bench` as a user runs it: short sweeps against every library that was
 * built, wrong results, ranks that die or are silent, and nothing left behind.
 */
#include "tests/cli/bench_run.h"

#include "cli/bench/report.h"
#include "tests/patience.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The processes that this run has started itself. */
static int children_of(const struct run *run, pid_t *pids, int room)
{
    char path[64];
    FILE *file;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)run->pid, (int)run->pid);
    file = fopen(path, "re");
    while (file && count < room && fscanf(file, "%d", &pids[count]) == 1)
        count++;
    if (file)
        fclose(file);
    return count;
}

static bool is_gone(pid_t pid)
{
    for (int tries = 0; tries < 6000; tries++) {
        if (kill(pid, 0) && errno == ESRCH)
            return true;
        usleep(10000);
    }
    return false;
}

/* The table is right, and says so and `word`. */
static void expect_right(const char *line, const char *word)
{
    struct run *run = bench(TEST_WORKERS, line);

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s", run->out);
    cr_expect(strstr(run->out, word), "%s", run->out);
    free(run);
}

Test(bench, rondo_is_measured_and_right)
{
    expect_right("all_reduce -n 3 --bytes 4,1000,100K --seconds 0.02 --rounds 2", "102400");
}

Test(bench, what_was_not_checked_is_not_called_right)
{
    struct run *run = bench(TEST_WORKERS, "all_reduce -n 2 --bytes 8 --iterations 1 --check 0");

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "# wrong values: not checked"), "%s", run->out);
    free(run);
}

Test(bench, ranks_may_be_threads)
{
    expect_right("all_gather -n 3 --threads --memory shared --bytes 12,100K --seconds 0.02",
                 "(threads)");
}

/* Those of whoever started the benchmark are not those of its ranks. */
Test(bench, ranks_are_told_their_place_whatever_the_environment_says)
{
    setenv("RONDO_HOST_ID", "a host of its own", 1);
    setenv("RONDO_LOCAL_RANK", "7", 1);
    expect_right("all_reduce -n 3 --bytes 1000 --seconds 0.02 --rounds 2", "1000");
}

Test(bench, memory_may_be_registered)
{
    expect_right("all_reduce -n 2 --memory registered --bytes 8,100K --seconds 0.02",
                 "memory registered");
}

Test(bench, every_collective_is_right_in_and_out_of_place)
{
    for (int i = 0; i < BENCH_COLLECTIVES; i++)
        for (int in_place = 0; in_place <= bench_collective_has_in_place((enum bench_collective)i);
             in_place++) {
            char line[256];
            struct run *run;

            snprintf(line, sizeof(line),
                     "%s -n 2 --threads --root 1 --bytes 24,20000 --iterations 3 --rounds 1%s",
                     bench_collective_name((enum bench_collective)i),
                     in_place ? " --in-place" : "");
            run = bench(TEST_WORKERS, line);
            cr_expect_eq(run->status, 0, "%s: %s", line, run->err);
            cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", line, run->out);
            free(run);
        }
}

Test(bench, cold_caches_and_rewritten_inputs_are_right_too)
{
    struct run *run =
        bench(TEST_WORKERS, "reduce_scatter -n 2 --threads --dtype int16 --op max --bytes 64,64K "
                            "--cold --rewrite --seconds 0.02 --rounds 2");

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s", run->out);
    free(run);
}

static void compare_with(const char *peer)
{
    char path[] = "/tmp/test-bench-XXXXXX";
    char begin_of_line[64];
    char line[256];
    struct run *run;

    close(mkstemp(path));
    snprintf(line, sizeof(line),
             "all_reduce -n 2 --only-peers --vs %s --bytes 8,64K --seconds 0.01 --csv %s", peer,
             path);
    run = bench(TEST_WORKERS, line);
    snprintf(begin_of_line, sizeof(begin_of_line), "%s,all_reduce,auto,2,", peer);
    cr_expect_eq(run->status, 0, "%s: %s", peer, run->err);
    cr_expect(strstr(run->out, "wrong values: 0 OK"), "%s: %s", peer, run->out);
    cr_expect_eq(lines_of(path, BENCH_CSV_HEADER), 1, "%s", peer);
    cr_expect_eq(lines_of(path, begin_of_line), 2, "%s", peer);
    unlink(path);
    free(run);
}

Test(bench, every_peer_that_was_built_is_measured_and_right)
{
    char peers[] = TEST_PEERS;
    char *rest = NULL;

    for (char *peer = strtok_r(peers, ",", &rest); peer; peer = strtok_r(NULL, ",", &rest))
        compare_with(peer);
}

Test(bench, a_peer_gets_columns_and_a_ratio)
{
    char line[256];
    struct run *run;

    if (!*TEST_PEERS)
        cr_skip_test("no other library was built");
    snprintf(line, sizeof(line), "broadcast -n 2 --bytes 1K --seconds 0.01 --vs %.*s",
             (int)strcspn(TEST_PEERS, ","), TEST_PEERS);
    run = bench(TEST_WORKERS, line);
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->out, "ratio"), "%s", run->out);
    /* On a busy machine the only size may be left out of the means. */
    cr_expect(strstr(run->out, "x best peer; lowest ") || strstr(run->out, "were not steady"), "%s",
              run->out);
    free(run);
}

Test(bench, a_type_that_a_peer_lacks_is_left_out_with_a_sentence)
{
    struct run *run;

    if (!strstr(TEST_PEERS, "openmpi"))
        cr_skip_test("Open MPI was not built in");
    run = bench(TEST_WORKERS,
                "all_reduce -n 2 --dtype bfloat16 --bytes 64 --seconds 0.01 --vs openmpi");
    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(strstr(run->err, "openmpi is left out: MPI has no such element type"), "%s",
              run->err);
    cr_expect(strstr(run->out, "n/a"), "%s", run->out);
    free(run);
}

/* A worker that is faulty in this way makes the benchmark fail with `words` on stdout or stderr. */
static void expect_fault(const char *fault, const char *line, const char *words)
{
    struct run *run;

    setenv("TEST_BENCH_FAULT", fault, 1);
    run = bench(TEST_FAULTY, line);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->out, words) || strstr(run->err, words), "%s%s", run->out, run->err);
    free(run);
}

Test(bench, wrong_values_are_counted_and_fail)
{
    expect_fault("corrupt", "all_reduce -n 3 --bytes 400,4000 --iterations 1 --rounds 1",
                 "wrong values: 2 FAILED"); /* one per size */
}

Test(bench, a_write_behind_the_output_is_wrong)
{
    expect_fault("overrun", "all_reduce -n 2 --bytes 400,8K --iterations 1 --rounds 1",
                 "wrong values: 2 FAILED");
}

Test(bench, wrong_values_are_said_of_their_library_and_the_runs_go_on)
{
    struct run *run;

    setenv("TEST_BENCH_FAULT", "peer", 1);
    run = bench(TEST_FAULTY, "all_reduce,all_gather -n 2 --bytes 400,4000 --iterations 1 "
                             "--rounds 1 --base " TEST_LIBRARY);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, "2 wrong values of base in all_reduce; its times"), "%s", run->err);
    cr_expect_null(strstr(run->err, "of rondo"), "%s", run->err);
    cr_expect_null(strstr(run->err, "ended early"), "%s", run->err);
    cr_expect(strstr(run->err, "2 wrong values of base in all_gather"), "%s", run->err);
    cr_expect(strstr(run->out, "# run 2 of 2"), "%s", run->out);
    free(run);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* No machine has so much. */
Test(bench, buffers_that_cannot_be_allocated_are_said_to_be_too_long)
{
    struct run *r = bench(TEST_WORKERS, "all_reduce -n 2 --bytes 64T");

    cr_expect_eq(r->status, 1);
    cr_expect(strstr(r->err, "allocating the buffers: out of memory"), "%s", r->err);
    free(r);
    r = bench(TEST_WORKERS, "all_reduce -n 2 --bytes 64T --memory shared");
    cr_expect_eq(r->status, 1);
    cr_expect(strstr(r->err, "allocating the buffers: "), "%s", r->err);
    cr_expect(strstr(r->err, "RONDO_HEAP_BYTES"), "%s", r->err);
    free(r);
}
#endif

Test(bench, a_library_that_does_not_open_is_reported)
{
    expect_fault("refuse", "all_reduce -n 2 --bytes 400", "of rondo: it does not want to");
}

/* A command to the ranks has room for fewer batches. */
Test(bench, there_are_as_many_calls_as_were_asked_for)
{
    expect_fault("hundredth", "all_reduce -n 2 --bytes 8 --rewrite --rounds 1 --iterations 100",
                 "a timed call: it is the hundredth");
    expect_fault("hundredth", "all_reduce -n 2 --bytes 8 --rewrite --rounds 1 --seconds 1000",
                 "a timed call: it is the hundredth");
    expect_fault("hundredth",
                 "all_reduce -n 2 --bytes 8 --rewrite --rounds 1 --iterations 1 --warmup 100",
                 "a timed call: it is the hundredth");
    expect_right("all_reduce -n 2 --bytes 8,64 --rewrite --rounds 3 --iterations 150 --warmup 70",
                 " 64 ");
}

Test(bench, a_silent_rank_is_an_error_after_the_timeout)
{
    char line[64];

    snprintf(line, sizeof(line), "all_reduce -n 2 --bytes 400 --timeout %.0f", world_patience(3));
    expect_fault("hang", line, "rank 0 of rondo, ");
}

/* Stops a rank at a moment when the others come to wait for it in a call, not between two calls,
 * where they would have nothing to do with it. */
static void stop_in_call(struct run *run, pid_t rank)
{
    const char *said = "is stopped (SIGSTOP"; /* by the others, after RONDO_LATE */

    for (int tries = 0; tries < 50 && !strstr(run->err, said); tries++) {
        kill(rank, SIGCONT);
        usleep(50000);
        kill(rank, SIGSTOP);
        for (int looks = 0; looks < 100 && !strstr(run->err, said); looks++) {
            usleep(20000);
            run_read(run->files[1], run->err);
        }
    }
}

static void end_one_of_four(int signal_to_send, bool to_parent)
{
    struct run *run;
    pid_t ranks[8];
    int count = 0;

    setenv("RONDO_LATE", "0.1", 1);
    setenv("RONDO_LOG", "warn", 1);
    run = run_begin(TEST_WORKERS, "all_reduce -n 4 --bytes 4M,4M,8M,4M,8M,4M --seconds 5");
    if (run_await_row(run))
        count = children_of(run, ranks, 8);
    cr_expect_eq(count, 4);
    if (!to_parent && count == 4)
        stop_in_call(run, ranks[2]);
    kill(to_parent || count != 4 ? run->pid : ranks[2], signal_to_send);
    run_finish(run);
    for (int i = 0; i < count; i++)
        cr_expect(is_gone(ranks[i]), "process %d of rank %d is still there", (int)ranks[i], i);
    cr_expect_eq(run->status, 1, "%s", run->err);
    if (!to_parent) {
        cr_expect(strstr(run->err, "rank 2 of rondo died (killed by signal 9"), "%s", run->err);
        cr_expect(strstr(run->err, "of rondo, "), "the others did not say what they saw: %s",
                  run->err);
    }
    free(run);
}

Test(bench, a_killed_rank_is_named_and_ends_the_others)
{
    end_one_of_four(SIGKILL, false);
}

Test(bench, a_terminated_benchmark_takes_its_ranks_along)
{
    end_one_of_four(SIGTERM, true);
    end_one_of_four(SIGQUIT, true);
}

/* The training is a script beside a copy of the program, which counts the signals that come to it
 * until a while after the first ones. A second one would kill the ranks of a real one. */
Test(bench, a_terminated_benchmark_of_trainings_tells_the_training_each_time_once)
{
    static const char command[] =
        "d=$(mktemp -d); cp " TEST_BENCH " $d/bench; cat > $d/rondo-train <<'END'\n"
        "#!/bin/sh\n"
        "trap 'n=$((n + 1)); touch $0.$n' TERM; n=0; touch $0.0\n"
        "while test $n -lt $TIMES; do sleep 0.01; done\n"
        "sleep 0.3; echo $n > $0.signals; exit 1\n"
        "END\n"
        "chmod +x $d/rondo-train; $d/bench ddp -n 2 2> $d/said & bench=$!\n"
        "for i in $(seq 0 $((TIMES - 1))); do\n"
        "    while kill -0 $bench && ! test -e $d/rondo-train.$i; do sleep 0.01; done\n"
        "    kill -TERM $bench\n"
        "done\n"
        "wait $bench; cat $d/said >&2\n"
        "n=$(cat $d/rondo-train.signals); rm -r $d; test \"$n\" = $TIMES";

    setenv("TIMES", "1", 1);
    cr_expect_eq(system(command), 0);
    setenv("TIMES", "2", 1);
    cr_expect_eq(system(command), 0);
}

Test(bench, under_a_launcher_its_processes_are_the_ranks)
{
    struct run *ranks[2];
    char address[64];

    snprintf(address, sizeof(address), "unix:test-bench-%d", (int)getpid());
    setenv("RONDO_ADDRESS", address, 1);
    setenv("RONDO_SECRET", "only these two ranks know this", 1);
    setenv("RONDO_SIZE", "2", 1);
    for (int rank = 0; rank < 2; rank++) {
        setenv("RONDO_RANK", rank ? "1" : "0", 1);
        ranks[rank] = run_begin(TEST_WORKERS, "gather --root 1 --bytes 80,8000 --seconds 0.01 "
                                              "--set RONDO_SLOTS=4");
    }
    for (int rank = 0; rank < 2; rank++) {
        run_finish(ranks[rank]);
        cr_expect_eq(ranks[rank]->status, 0, "rank %d: %s", rank, ranks[rank]->err);
    }
    cr_expect(strstr(ranks[0]->out, "wrong values: 0 OK"), "%s", ranks[0]->out);
    cr_expect_str_empty(ranks[1]->out, "only rank 0 prints");
    free(ranks[0]);
    free(ranks[1]);
}

Test(bench, runs_whose_ranks_differ_are_refused_under_a_launcher)
{
    static const char *const lines[] = {"all_reduce --set RONDO_SLOTS=2,4,2",
                                        "all_reduce --memory host,cuda"};

    setenv("RONDO_SIZE", "2", 1);
    setenv("RONDO_RANK", "1", 1);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct run *run = bench(TEST_WORKERS, lines[i]);

        cr_expect_eq(run->status, 2, "%s: %s", lines[i], run->err);
        cr_expect(strstr(run->err, "the ranks of a launcher go on"), "%s", run->err);
        free(run);
    }
}

Test(bench, a_missing_worker_is_explained)
{
    struct run *run = bench("/nowhere", "all_reduce -n 2 --bytes 8");

    cr_expect_eq(run->status, 1);
    cr_expect(strstr(run->err, "rondo-bench-rondo) is not installed"), "%s", run->err);
    free(run);
}
