/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress_api.c - the bodies of these tests as threads, without Criterion: for ThreadSanitizer. Says
 * what failed and ends with 1. Each part does little; the sanitizer needs each path once, not
 * often.
 */
#include "bodies.h"
#include "closings.h"
#include "failures.h"
#include "tests/api/values/matrix.h"

#include <stdio.h>
#include <stdlib.h>

static struct world_report report;

static int run(const char *what, int size, world_body body, void *argument)
{
    int failed = world_run_threads(size, body, argument, &report);

    printf("%s %s on %d threads%s%s\n", failed ? "FAILED" : "passed", what, size,
           failed ? ": " : "", failed ? report.summary : "");
    fflush(stdout);
    return failed != 0;
}

static int run_matrix(void)
{
    static char sentence[WORLD_SENTENCE];
    struct matrix *matrix = world_share(sizeof(*matrix));
    struct matrix_part part = {matrix, false};
    const int sizes[] = {2, 3, 5, 8};
    int failed = 0;

    matrix_init(matrix, 3, sentence);
    if (sentence[0]) {
        printf("FAILED to find out what forms there are: %s\n", sentence);
        return 1;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        failed += run("the matrix of calls", sizes[i], matrix_run, &part);
    return failed;
}

static int run_bodies(void)
{
    static const struct {
        const char *what;
        world_body body;
    } bodies[] = {
        {"fused calls", groups_fuse_many_calls},
        {"an exchange with all", groups_exchange_with_all},
        {"a chain of sends", groups_send_recv_chain},
        {"a stream's order", streams_keep_order},
        {"functions on a stream", streams_call_functions_in_order},
        {"events", streams_wait_for_events},
        {"a stream beside blocking calls", streams_overlap_with_others},
        {"calls of several threads", streams_take_calls_of_several_threads},
        {"copies by several threads", splits_by_several_threads},
        {"odd and even parts", splits_odd_and_even},
        {"parts of parts", splits_nest},
        {"messages of all lengths", kinds_of_messages_take_turns},
        {"a copy", splits_dup_has_its_own_order},
        {"memory of changing kinds", kinds_change},
        {"maps in rank order", operations_affine_maps_in_rank_order},
        {"different numbers of operations", operations_differ_in_number},
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        for (int size = 2; size <= 5; size += 3)
            failed += run(bodies[i].what, size, bodies[i].body, NULL);
    return failed;
}

/* Peers read the memory where it is, which they cannot over a network. */
static int run_in_use(void)
{
    if (getenv("RONDO_TRANSPORT"))
        return 0;
    return run("memory deregistered in use", 5, in_use_deregister, NULL) +
           run("memory freed in use", 5, in_use_free, NULL);
}

static int run_closings(void)
{
    struct closings c = {.collective = RONDO_ALL_REDUCE, .count = 100, .calls = 2, .rounds = 10};

    return run("closing while others are at it", 4, closings_live, &c);
}

/* An abort is meant to fail everywhere, with its own result. */
static int run_abort(void)
{
    struct failures *f = world_share(sizeof(*f));
    struct world world = {.size = 4};
    int wrong = 0;

    f->culprit = 2;
    f->collective = RONDO_ALL_REDUCE;
    f->count = 1000;
    f->calls = 5;
    world_run(&world, failures_abort, f, &report);
    for (int r = 0; r < 4; r++)
        wrong += report.results[r] != RONDO_ERROR_ABORTED;
    printf("%s an abort on 4 threads%s%s\n", wrong ? "FAILED" : "passed", wrong ? ": " : "",
           wrong ? report.summary : "");
    world_unshare(f, sizeof(*f));
    return wrong != 0;
}

/* Ranks that wait read what the others show of their waits; however many of them do so before the
 * first gives up, all end alike. */
static int run_chain(void)
{
    struct failures *f = world_share(sizeof(*f));
    struct world world = {.size = 4};
    int wrong = 0;

    f->timeout = 1;
    f->culprit = 2;
    world_run(&world, failures_wait_in_chain, f, &report);
    for (int r = 0; r < 4; r++)
        wrong += report.results[r] != RONDO_ERROR_TIMEOUT && (r != 2 || report.results[r]);
    printf("%s a chain of 4 threads that wait%s%s\n", wrong ? "FAILED" : "passed",
           wrong ? ": " : "", wrong ? report.summary : "");
    world_unshare(f, sizeof(*f));
    return wrong != 0;
}

int main(void)
{
    static char sentence[WORLD_SENTENCE];
    int failed = run_matrix() + run_bodies() + run_in_use() + run_abort() + run_chain();

    failed += run_closings();
    if (groups_run_in_one_thread(4, false, sentence)) {
        printf("FAILED all ranks in one thread: %s\n", sentence);
        failed++;
    }
    return failed != 0;
}
