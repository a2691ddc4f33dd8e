/* SPDX-License-Identifier: BSD-3-Clause */
/* test_call_group.c - groups at their edges: empty, spoiled, nested, unbalanced. */
#include "comm_bodies.h"
#include "rondo/rondo.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static rondo_comm *comms[2];
static int32_t values[2];

static void open_two(void)
{
    cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    values[0] = 1;
    values[1] = 2;
}

static void close_two(void)
{
    rondo_comm_close(comms[0]);
    rondo_comm_close(comms[1]);
}

TestSuite(group, .init = open_two, .fini = close_two);

static rondo_result sum(int rank)
{
    return rondo_all_reduce(&values[rank], &values[rank], 1, RONDO_INT32, RONDO_SUM, comms[rank],
                            NULL);
}

static void expect_that_groups_work(void)
{
    values[0] = values[1] = 5;
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(sum(0) == RONDO_OK && sum(1) == RONDO_OK);
    cr_expect(values[0] == 5, "nothing runs before the end");
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(values[0] == 10 && values[1] == 10);
}

Test(group, an_empty_one_does_nothing_also_nested)
{
    cr_expect(rondo_group_start() == RONDO_OK && rondo_group_end() == RONDO_OK);
    for (int i = 0; i < 100; i++)
        cr_expect(rondo_group_start() == RONDO_OK);
    for (int i = 0; i < 100; i++)
        cr_expect(rondo_group_end() == RONDO_OK);
    expect_that_groups_work();
}

Test(group, an_end_without_a_start_is_refused)
{
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_group_start"), "%s", rondo_last_error(NULL));
    expect_that_groups_work();
}

Test(group, a_wrong_call_spoils_all_of_it_and_leaves_the_next_one_alone)
{
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(sum(0) == RONDO_OK);
    cr_expect(rondo_all_reduce(NULL, &values[1], 1, RONDO_INT32, RONDO_SUM, comms[1], NULL) ==
              RONDO_ERROR_INVALID);
    cr_expect(sum(1) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(values[0] == 1 && values[1] == 2, "nothing ran");
    expect_that_groups_work();
}

Test(group, a_call_without_a_communicator_spoils_it_too)
{
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_barrier(NULL, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_collective_call(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    expect_that_groups_work();
}

Test(group, joining_as_a_rank_that_does_not_exist_spoils_it)
{
    rondo_unique_id id = {{0}};
    rondo_comm *comm = NULL;

    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_comm_open_id(&id, 2, 2, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID && !comm);
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_comm_open_id(&id, 2, 0, NULL, &comm) == RONDO_OK, "noticed at the end");
    cr_expect(rondo_group_end() != RONDO_OK && !comm);
    expect_that_groups_work();
}

Test(group, splitting_inside_is_refused_and_the_rest_runs)
{
    rondo_comm *part = NULL;

    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(sum(0) == RONDO_OK && sum(1) == RONDO_OK);
    cr_expect(rondo_comm_split(comms[0], 0, 0, NULL, &part) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_dup(comms[0], &part) == RONDO_ERROR_INVALID && !part);
    cr_expect(strstr(rondo_last_error(comms[0]), "group"), "%s", rondo_last_error(comms[0]));
    cr_expect(rondo_group_end() == RONDO_OK);
    cr_expect(values[0] == 3 && values[1] == 3);
}

Test(group, many_more_calls_than_there_is_room_at_first_keep_their_order)
{
    cr_expect(rondo_group_start() == RONDO_OK);
    for (int i = 0; i < 20; i++)
        cr_expect(sum(i % 2) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_OK);
    cr_expect(values[0] == 3 * 512 && values[1] == 3 * 512, "%d", values[0]);
}

Test(group, a_broken_communicator_spoils_it)
{
    cr_expect(rondo_comm_abort(comms[0]) == RONDO_OK);
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(sum(0) == RONDO_ERROR_ABORTED);
    cr_expect(rondo_group_end() == RONDO_ERROR_ABORTED);
}

Test(group, streams_and_ranks_mix)
{
    const char *wrong = groups_mix_streams_and_ranks(5);

    cr_expect(!wrong, "%s", wrong);
}

static rondo_stream *streams[2];

static void open_streams(void)
{
    for (int i = 0; i < 2; i++)
        cr_assert(rondo_stream_open(&streams[i]) == RONDO_OK);
}

/* The queued calls have worked, and the sums are right. */
static void expect_streams_done(int32_t wanted)
{
    for (int i = 0; i < 2; i++) {
        cr_expect(rondo_stream_synchronize(streams[i]) == RONDO_OK, "%s", rondo_last_error(NULL));
        rondo_stream_close(streams[i]);
        cr_expect(values[i] == wanted, "%d instead of %d", (int)values[i], (int)wanted);
    }
}

static rondo_result sum_on(int rank, rondo_stream *stream)
{
    return rondo_all_reduce(&values[rank], &values[rank], 1, RONDO_INT32, RONDO_SUM, comms[rank],
                            stream);
}

Test(group, ranks_of_one_thread_may_share_a_stream)
{
    open_streams();
    values[0] = values[1] = 1;
    rondo_group_start();
    for (int rank = 0; rank < 2; rank++)
        cr_expect(sum_on(rank, streams[0]) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    expect_streams_done(2);
}

Test(group, the_order_of_calls_holds_whatever_streams_a_rank_uses)
{
    open_streams();
    values[0] = values[1] = 1;
    rondo_group_start();
    for (int i = 0; i < 3; i++) {
        cr_expect(sum_on(0, streams[i % 2]) == RONDO_OK);
        cr_expect(rondo_broadcast(&values[0], &values[0], 1, RONDO_INT32, 1, comms[0],
                                  streams[1 - i % 2]) == RONDO_OK);
        cr_expect(sum_on(1, streams[1]) == RONDO_OK);
        cr_expect(rondo_broadcast(&values[1], &values[1], 1, RONDO_INT32, 1, comms[1],
                                  streams[1]) == RONDO_OK);
    }
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    expect_streams_done(8);
}

/* More than slots hold: a send is only done when it is received. */
static void exchange_on(rondo_stream *first, rondo_stream *second)
{
    enum { COUNT = 4 << 20 };
    char *memory = calloc(4, COUNT);

    cr_assert(memory);
    memset(memory, 7, COUNT);
    memset(memory + COUNT, 8, COUNT);
    rondo_group_start();
    for (int rank = 0; rank < 2; rank++) {
        cr_expect(rondo_send(memory + rank * COUNT, COUNT, RONDO_INT8, 1 - rank, comms[rank],
                             rank ? first : second) == RONDO_OK);
        cr_expect(rondo_recv(memory + (2 + rank) * COUNT, COUNT, RONDO_INT8, 1 - rank, comms[rank],
                             rank ? second : first) == RONDO_OK);
    }
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int i = 0; i < 2; i++)
        cr_expect(rondo_stream_synchronize(streams[i]) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(memory[2 * COUNT] == 8 && memory[4 * COUNT - 1] == 7);
    free(memory);
}

Test(group, exchanges_over_several_streams_do_not_wait_for_each_other)
{
    open_streams();
    exchange_on(streams[0], streams[1]);
    exchange_on(NULL, streams[1]);
    values[0] = values[1] = 0;
    expect_streams_done(0);
}

/* ---- What calls of an open group use --------------------------------------------------------- */

Test(group, what_its_calls_need_stays_open)
{
    rondo_stream *stream = NULL;

    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_all_reduce(&values[0], &values[0], 1, RONDO_INT32, RONDO_SUM, comms[0],
                               stream) == RONDO_OK);
    rondo_stream_close(stream);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_stream_close"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK, "it is still there");
    rondo_stream_close(stream);

    cr_expect(rondo_group_start() == RONDO_OK && sum(1) == RONDO_OK);
    rondo_comm_close(comms[1]);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_comm_close"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    expect_that_groups_work();
}

Test(group, what_its_calls_do_not_need_may_be_closed)
{
    rondo_stream *stream = NULL;
    rondo_comm *other = NULL;

    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_assert(rondo_comm_open_all(1, NULL, &other) == RONDO_OK);
    cr_expect(rondo_group_start() == RONDO_OK && sum(0) == RONDO_OK && sum(1) == RONDO_OK);
    rondo_stream_close(stream);
    rondo_comm_close(other);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(values[0] == 3 && values[1] == 3);
}

Test(group, memory_of_its_calls_is_not_freed)
{
    void *memory = NULL, *other = NULL;

    cr_assert(rondo_mem_alloc(4096, &memory) == RONDO_OK);
    cr_assert(rondo_mem_alloc(4096, &other) == RONDO_OK);
    cr_expect(rondo_group_start() == RONDO_OK);
    for (int r = 0; r < 2; r++)
        cr_expect(rondo_broadcast(r ? &values[1] : memory, r ? &values[1] : memory, 1, RONDO_INT32,
                                  1, comms[r], NULL) == RONDO_OK);
    cr_expect(rondo_mem_free(memory) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "open group"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_mem_free(other) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(*(int32_t *)memory == 2);
    cr_expect(rondo_mem_free(memory) == RONDO_OK);
}

/* A message of this rank to itself. */
static rondo_result pass(rondo_comm *comm, int32_t *memory)
{
    rondo_result result = rondo_send(&memory[0], 1, RONDO_INT32, 0, comm, NULL);

    return result ? result : rondo_recv(&memory[1], 1, RONDO_INT32, 0, comm, NULL);
}

static bool child_is_refused(void)
{
    pid_t child = fork();
    int status = 0;

    if (!child)
        _exit(rondo_group_end() != RONDO_ERROR_INVALID ||
              !strstr(rondo_last_error(NULL), "rondo_group_end"));
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    return !status;
}

Test(group, a_repeated_one_holds_its_calls_as_any_other_does)
{
    rondo_comm *self = NULL;
    void *memory = NULL;
    double estimate = 0;
    int32_t *numbers;

    cr_assert(rondo_comm_open_all(1, NULL, &self) == RONDO_OK);
    cr_assert(rondo_mem_alloc(4096, &memory) == RONDO_OK);
    numbers = memory;
    for (numbers[0] = 1; numbers[0] < 6; numbers[0]++) {
        cr_expect(rondo_group_start() == RONDO_OK && pass(self, numbers) == RONDO_OK);
        if (numbers[0] == 4) {
            cr_expect(rondo_mem_free(memory) == RONDO_ERROR_INVALID);
            cr_expect(strstr(rondo_last_error(NULL), "open group"), "%s", rondo_last_error(NULL));
        }
        if (numbers[0] == 5) {
            cr_expect(child_is_refused());
            cr_expect(rondo_group_estimate(&estimate) == RONDO_OK && estimate > 0);
        }
        cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
        cr_expect_eq(numbers[1], numbers[0]);
    }
    cr_expect(rondo_group_start() == RONDO_OK && pass(self, numbers) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    numbers[1] = 0;
    cr_expect(rondo_group_start() == RONDO_OK && pass(self, numbers + 2) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect_eq(numbers[1], 0, "what was repeated is not made once more");
    cr_expect(rondo_group_start() == RONDO_OK && pass(self, numbers + 2) == RONDO_OK);
    rondo_comm_close(self);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_comm_close"), "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    rondo_comm_close(self);
    cr_expect(rondo_mem_free(memory) == RONDO_OK);
    expect_that_groups_work();
}

/* ---- Joins ----------------------------------------------------------------------------------- */

Test(group, what_a_join_asked_for_may_be_changed_before_the_end)
{
    rondo_config config = RONDO_CONFIG_INIT;
    char algorithm[] = "ring", network[] = "tcp";
    rondo_comm *comm = NULL;
    rondo_unique_id id;

    config.algorithm = algorithm;
    config.network = network;
    cr_assert(rondo_unique_id_create(&id) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_comm_open_id(&id, 1, 0, &config, &comm) == RONDO_OK);
    memset(algorithm, 'x', strlen(algorithm));
    memset(network, 'x', strlen(network));
    cr_expect(!comm);
    cr_expect(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert(comm);
    rondo_comm_close(comm);
}

Test(group, a_join_that_fails_leaves_nobody_a_communicator)
{
    rondo_comm *comm = NULL, *other = NULL;
    rondo_unique_id id, wrong;

    memset(&wrong, 0, sizeof(wrong));
    cr_assert(rondo_unique_id_create(&id) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_comm_open_id(&id, 1, 0, NULL, &comm) == RONDO_OK);
    cr_expect(rondo_comm_open_id(&wrong, 1, 0, NULL, &other) == RONDO_OK);
    cr_expect(rondo_group_end() != RONDO_OK);
    cr_expect(strlen(rondo_last_error(NULL)) > 10);
    cr_expect(!comm && !other);
}

/* ---- Errors of several communicators --------------------------------------------------------- */

Test(group, the_sentence_is_that_of_the_communicator_whose_result_it_is)
{
    rondo_comm *others[2];

    cr_assert(rondo_comm_open_all(2, NULL, others) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert(rondo_comm_abort(comms[1]) == RONDO_OK); /* heard at once */
    rondo_comm_close(others[1]);                       /* found out after a while */
    cr_expect(rondo_group_start() == RONDO_OK);
    cr_expect(rondo_barrier(comms[0], NULL) == RONDO_OK);
    cr_expect(rondo_barrier(others[0], NULL) == RONDO_OK);
    cr_expect(rondo_group_end() == RONDO_ERROR_ABORTED);
    cr_expect(strstr(rondo_last_error(NULL), "Rank 1 aborted"), "%s", rondo_last_error(NULL));
    rondo_comm_close(others[0]);
}
