/* SPDX-License-Identifier: BSD-3-Clause */
/* test_posts.c - calls that are posted, and finished by whoever comes next (rondo/bindings.h). */
#include "tests/api/posts/posts.h"

#include "rondo/bindings.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SIZE = 2, LONG = 1 << 20 };

static struct world_report report;
static rondo_comm *comms[SIZE];
static int32_t values[SIZE], sums[SIZE];

/* Both ranks are this thread's, so what a rank needs of its peer has to be there already. */
static void open_both(void)
{
    cr_assert(rondo_comm_open_all(SIZE, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_both(void)
{
    for (int r = 0; r < SIZE; r++)
        rondo_comm_close(comms[r]);
}

TestSuite(posts, .timeout = 120, .init = open_both, .fini = close_both);

static rondo_call sum_of(int rank)
{
    values[rank] = rank + 1;
    sums[rank] = 0;
    return (rondo_call){.struct_size = sizeof(rondo_call),
                        .collective = RONDO_ALL_REDUCE,
                        .type = RONDO_INT32,
                        .op = RONDO_SUM,
                        .input = &values[rank],
                        .output = &sums[rank],
                        .count = 1,
                        .comm = comms[rank]};
}

static rondo_request *post(int rank)
{
    rondo_call call = sum_of(rank);
    rondo_request *request = NULL;

    cr_assert(rondo_collective_post(&call, &request) == RONDO_OK, "%s", rondo_last_error(NULL));
    return request;
}

static void finish(rondo_request *request, rondo_result expected)
{
    rondo_result result = rondo_request_wait(request, -1);

    cr_assert(result == expected, "%d: %s", (int)result, rondo_last_error(NULL));
    rondo_request_close(request);
}

Test(posts, peers_wait_for_nothing_of_who_has_posted)
{
    rondo_request *request = post(0);

    cr_assert(request, "rank 1 has sent nothing yet");
    cr_expect(rondo_request_wait(request, 0) == RONDO_IN_PROGRESS);
    cr_expect(rondo_request_wait(request, 0.01) == RONDO_IN_PROGRESS);
    cr_expect(!post(1), "all it needs is there");
    cr_expect_eq(sums[1], 3);
    finish(request, RONDO_OK);
    cr_expect_eq(sums[0], 3);
}

Test(posts, the_next_call_finishes_what_is_posted)
{
    rondo_request *request = post(0), *next;

    cr_expect(!post(1));
    next = post(0);
    cr_assert(next && next != request);
    cr_expect(rondo_request_wait(request, 0) == RONDO_OK);
    rondo_request_close(request);
    cr_expect(!post(1));
    finish(next, RONDO_OK);
    cr_expect_eq(sums[0], 3);
}

Test(posts, closing_finishes_what_is_posted)
{
    rondo_request *request = post(0), *dropped;

    cr_expect(!post(1));
    dropped = post(0);
    cr_expect(!post(1));
    rondo_request_close(dropped);
    rondo_comm_close(comms[0]);
    cr_expect_eq(sums[0], 3);
    finish(request, RONDO_OK);
    cr_assert(rondo_comm_abort(comms[1]) == RONDO_OK);
    rondo_comm_close(comms[1]);
    open_both();
}

Test(posts, an_abort_ends_what_is_posted_and_says_so)
{
    rondo_request *request = post(0);

    cr_assert(rondo_comm_abort(comms[1]) == RONDO_OK);
    cr_expect(rondo_request_wait(request, -1) == RONDO_ERROR_ABORTED);
    cr_expect(strstr(rondo_last_error(NULL), "Rank 1 aborted"), "%s", rondo_last_error(NULL));
    finish(request, RONDO_ERROR_ABORTED);
}

static void poll_until_it_is_aborted(double seconds)
{
    rondo_request *request = post(0);
    rondo_result result;

    cr_assert(rondo_comm_abort(comms[1]) == RONDO_OK);
    do
        result = rondo_request_wait(request, seconds);
    while (result == RONDO_IN_PROGRESS);
    cr_expect(result == RONDO_ERROR_ABORTED);
    cr_expect(strstr(rondo_last_error(NULL), "Rank 1 aborted"), "%s", rondo_last_error(NULL));
    rondo_request_close(request);
}

Test(posts, who_polls_hears_of_an_abort, .timeout = 60)
{
    poll_until_it_is_aborted(0);
}

Test(posts, who_waits_for_moments_hears_of_an_abort, .timeout = 60)
{
    poll_until_it_is_aborted(1e-5);
}

Test(posts, freeing_memory_waits_for_what_is_posted)
{
    rondo_call call = sum_of(0);
    rondo_request *request = NULL;
    void *memory = NULL;

    cr_assert(rondo_mem_alloc(64, &memory) == RONDO_OK);
    *(int32_t *)memory = 1;
    call.input = call.output = memory;
    cr_assert(rondo_collective_post(&call, &request) == RONDO_OK);
    cr_assert(request);
    cr_expect(!post(1));
    cr_expect(rondo_mem_free(memory) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_request_wait(request, 0) == RONDO_OK);
    rondo_request_close(request);
}

static void add(void *context, const void *lower, void *inout, size_t count, rondo_type type)
{
    (void)context;
    (void)type;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)inout)[i] += ((const int32_t *)lower)[i];
}

Test(posts, what_can_not_be_posted_is_not_begun)
{
    static int32_t many[SIZE][LONG];
    rondo_request *first = post(0), *request = NULL;
    rondo_call call = sum_of(0);
    rondo_op op;

    cr_expect(rondo_collective_post(&call, &request) == RONDO_IN_PROGRESS && !request,
              "the first one is not over");
    cr_expect(!post(1));
    finish(first, RONDO_OK);
    cr_expect_eq(sums[0], 3);
    call = sum_of(0);
    call.input = call.output = many[0];
    call.count = LONG;
    cr_expect(rondo_collective_post(&call, &request) == RONDO_IN_PROGRESS && !request);
    cr_assert(rondo_op_create_user(comms[0], add, NULL, 1, &op) == RONDO_OK);
    call = sum_of(0);
    call.op = op;
    cr_expect(rondo_collective_post(&call, &request) == RONDO_IN_PROGRESS && !request);
    cr_expect(rondo_op_destroy(comms[0], op) == RONDO_OK);
    first = post(0); /* the communicator is as before */
    cr_expect(!post(1));
    finish(first, RONDO_OK);
}

Test(posts, wrong_arguments_are_refused)
{
    rondo_call call = sum_of(0);
    rondo_request *request = NULL;
    rondo_stream *stream;

    cr_expect(rondo_collective_post(NULL, &request) == RONDO_ERROR_INVALID);
    cr_expect(rondo_collective_post(&call, NULL) == RONDO_ERROR_INVALID);
    call.comm = NULL;
    cr_expect(rondo_collective_post(&call, &request) == RONDO_ERROR_INVALID);
    call = sum_of(0);
    call.output = NULL;
    cr_expect(rondo_collective_post(&call, &request) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "no output"), "%s", rondo_last_error(NULL));
    call = sum_of(0);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    call.stream = stream;
    cr_expect(rondo_collective_post(&call, &request) == RONDO_ERROR_INVALID);
    rondo_stream_close(stream);
    call.stream = NULL;
    cr_assert(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_collective_post(&call, &request) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "group"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_end() == RONDO_OK, "nothing is in it");
    cr_expect(rondo_request_wait(NULL, 0) == RONDO_ERROR_INVALID);
    rondo_request_close(NULL);
    cr_expect(!request);
}

Test(posts, posted_calls_give_what_calls_give)
{
    for (int size = 1; size <= 9; size += size < 5 ? 1 : 4)
        cr_assert(world_run_threads(size, posts_give_what_calls_give, NULL, &report) == 0, "%s",
                  report.summary);
    cr_assert(world_run_processes(3, posts_give_what_calls_give, NULL, &report) == 0, "%s",
              report.summary);
}

Test(posts, several_threads_wait_for_one)
{
    for (int size = 2; size <= 5; size += 3)
        cr_assert(world_run_threads(size, posts_are_waited_for_by_several_threads, NULL, &report) ==
                      0,
                  "%s", report.summary);
}

Test(posts, a_rank_that_dies_is_named_by_who_waits)
{
    world_run_processes(3, posts_lose_a_rank, NULL, &report);
    for (int r = 0; r < 2; r++) {
        cr_expect(report.results[r] == RONDO_ERROR_PEER, "%s", report.summary);
        cr_expect(strstr(report.sentences[r], "ank 2"), "%s", report.summary);
    }
}
