/* SPDX-License-Identifier: BSD-3-Clause */
/* test_failures.c - a rank dies, falls silent or gives up:
 * the others end soon, and know who it was. */
#include "failures.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world_report report;

enum { RANKS = 4, CULPRIT = 2 };

static struct failures *open_failures(rondo_collective collective, size_t count)
{
    struct failures *f = world_share(sizeof(*f));

    f->culprit = CULPRIT;
    f->collective = collective;
    f->count = count;
    f->calls = 20;
    return f;
}

/* All but the culprit have this result and say "rank 2". */
static void expect_everywhere(rondo_result wanted, const char *what)
{
    for (int r = 0; r < RANKS; r++) {
        if (r == CULPRIT)
            continue;
        cr_expect(report.results[r] == wanted, "%s: rank %d: %s: \"%s\"", what, r,
                  rondo_result_string(report.results[r]), report.sentences[r]);
        cr_expect(strcasestr(report.sentences[r], "rank 2"), "%s: rank %d does not name it: \"%s\"",
                  what, r, report.sentences[r]);
    }
}

static void kill_one(rondo_collective collective, size_t count, const char *algorithm)
{
    struct failures *f = open_failures(collective, count);
    struct world world = {.size = RANKS, .processes = true};
    char what[64];

    f->algorithm = algorithm;
    snprintf(what, sizeof(what), "%s of %zu", rondo_collective_name(collective), count);
    world_run(&world, failures_die, f, &report);
    cr_expect(report.signals[CULPRIT] == SIGKILL, "%s: it did not die", what);
    expect_everywhere(RONDO_ERROR_PEER, what);
    for (int r = 0; r < RANKS; r++)
        cr_expect(r == CULPRIT || f->noticed[r] - f->died < world_patience(1.0),
                  "%s: rank %d took %.3f s", what, r, f->noticed[r] - f->died);
    world_unshare(f, sizeof(*f));
}

Test(failures, a_killed_process_is_named_within_a_second_whatever_is_called)
{
    for (int c = 0; c <= RONDO_BARRIER; c++)
        kill_one((rondo_collective)c, 100, NULL);
}

Test(failures, a_process_killed_between_groups_of_messages_is_named_within_a_second)
{
    kill_one(RONDO_SEND, 2, NULL);
    kill_one(RONDO_SEND, 10000, NULL);
}

Test(failures, a_process_killed_between_large_calls_is_named_within_a_second)
{
    kill_one(RONDO_ALL_REDUCE, 300000, NULL);
    kill_one(RONDO_ALL_GATHER, 100000, NULL);
    kill_one(RONDO_BROADCAST, 300000, NULL);
}

/* The programs of a rank wait for different peers: the dead one is found whichever waits for it. */
Test(failures, a_killed_process_is_named_also_where_only_one_of_several_programs_waits_for_it)
{
    kill_one(RONDO_ALL_REDUCE, 100, "tree");
    kill_one(RONDO_ALL_REDUCE, 100, "binomial");
    kill_one(RONDO_ALL_REDUCE, 100, "hierarchy");
}

static void silence_one(bool processes, rondo_collective collective)
{
    struct failures *f = open_failures(collective, 100);
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = RANKS, .processes = processes, .config = &config};

    config.timeout = world_patience(1);
    world_run(&world, failures_fall_silent, f, &report);
    expect_everywhere(RONDO_ERROR_TIMEOUT, rondo_collective_name(collective));
    world_unshare(f, sizeof(*f));
}

Test(failures, a_silent_process_is_named_after_the_timeout)
{
    silence_one(true, RONDO_ALL_REDUCE);
    silence_one(true, RONDO_BROADCAST);
}

Test(failures, a_silent_thread_is_named_after_the_timeout)
{
    silence_one(false, RONDO_ALL_REDUCE);
}

/* Rank 3 waits for rank 0, that for rank 1, and that for rank 2. */
static void wait_in_chain(bool processes, bool stops)
{
    struct failures *f = open_failures(RONDO_BARRIER, 0);
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = RANKS, .processes = processes, .config = &config};

    config.timeout = world_patience(2);
    f->stops = stops;
    world_run(&world, failures_wait_in_chain, f, &report);
    for (int r = 0; r < RANKS; r++)
        cr_expect(r == CULPRIT || (report.results[r] == RONDO_ERROR_TIMEOUT &&
                                   strstr(report.sentences[r], " s for rank 2")),
                  "rank %d: %s: \"%s\"", r, rondo_result_string(report.results[r]),
                  report.sentences[r]);
    world_unshare(f, sizeof(*f));
}

Test(failures, a_process_that_makes_no_call_is_named_by_those_who_wait_for_its_waiters)
{
    wait_in_chain(true, false);
}

Test(failures, a_thread_that_makes_no_call_is_named_by_those_who_wait_for_its_waiters)
{
    wait_in_chain(false, false);
}

/* Rank 2 has shown that it waits for rank 3, then it stops: that word counts for nothing. */
Test(failures, a_process_that_stops_while_it_waits_for_another_is_named_by_all)
{
    wait_in_chain(true, true);
}

static void abort_one(bool processes)
{
    struct failures *f = open_failures(RONDO_ALL_REDUCE, 1000);
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = RANKS, .processes = processes, .config = &config};

    config.timeout = 100;
    world_run(&world, failures_abort, f, &report);
    for (int r = 0; r < RANKS; r++)
        cr_expect(report.results[r] == RONDO_ERROR_ABORTED, "rank %d: %s: \"%s\"", r,
                  rondo_result_string(report.results[r]), report.sentences[r]);
    world_unshare(f, sizeof(*f));
}

Test(failures, an_abort_from_another_thread_ends_every_process)
{
    abort_one(true);
}

Test(failures, an_abort_from_another_thread_ends_every_thread)
{
    abort_one(false);
}

/* Each round has room in the heap, as what was left in the round before is given back. */
static void abort_in_dup(bool processes)
{
    struct failures *f = open_failures(RONDO_ALL_REDUCE, 0);
    struct world world = {.size = 3, .processes = processes};
    int failed;

    f->calls = 60;
    setenv("RONDO_HEAP_BYTES", "512M", 1);
    failed = world_run(&world, failures_abort_in_dup, f, &report);
    cr_expect(failed == 0, "%s", report.summary);
    world_unshare(f, sizeof(*f));
}

Test(failures, an_abort_while_processes_copy_a_communicator_reaches_all_at_once)
{
    abort_in_dup(true);
}

Test(failures, an_abort_while_threads_copy_a_communicator_reaches_all_at_once)
{
    abort_in_dup(false);
}
