/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bindings.c - ids for several hosts and the outcome of each call (rondo/bindings.h). */
#include "../world.h"
#include "rondo/bindings.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world_report report;

TestSuite(bindings, .timeout = 120);

/* ---- Algorithms ------------------------------------------------------------------------------ */

Test(bindings, a_call_that_is_refused_is_not_the_last_one_that_ran)
{
    int32_t value = 1;
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = RONDO_BROADCAST,
                       .type = RONDO_INT32,
                       .input = &value,
                       .output = &value,
                       .count = 1,
                       .algorithm = "halving"};
    const char *ran;

    cr_assert(rondo_comm_open_all(1, NULL, &call.comm) == RONDO_OK);
    cr_assert(rondo_broadcast(&value, &value, 1, RONDO_INT32, 0, call.comm, NULL) == RONDO_OK);
    ran = rondo_comm_last_algorithm(call.comm);
    cr_assert(ran && *ran);
    cr_assert(rondo_collective_call(&call) == RONDO_ERROR_UNSUPPORTED);
    cr_assert(rondo_comm_last_algorithm(call.comm));
    cr_expect_str_eq(rondo_comm_last_algorithm(call.comm), ran);
    rondo_comm_close(call.comm);
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

enum { PAIRS = 2, SIZE = 2 };

/* Two communicators of two ranks in this process; each rank has a stream. */
struct bench {
    rondo_comm *comms[PAIRS][SIZE];
    rondo_stream *streams[SIZE];
    rondo_event *events[3];
    int32_t values[SIZE];
};

static void bench_open(struct bench *bench)
{
    for (int i = 0; i < PAIRS; i++)
        cr_assert(rondo_comm_open_all(SIZE, NULL, bench->comms[i]) == RONDO_OK);
    for (int r = 0; r < SIZE; r++)
        cr_assert(rondo_stream_open(&bench->streams[r]) == RONDO_OK);
    for (int i = 0; i < 3; i++)
        cr_assert(rondo_event_open(&bench->events[i]) == RONDO_OK);
}

static void bench_close(struct bench *bench)
{
    for (int r = 0; r < SIZE; r++)
        rondo_stream_close(bench->streams[r]);
    for (int i = 0; i < 3; i++)
        rondo_event_close(bench->events[i]);
    for (int i = 0; i < PAIRS * SIZE; i++)
        rondo_comm_close(bench->comms[i / SIZE][i % SIZE]);
}

static void call(struct bench *bench, int pair, int rank)
{
    int32_t *value = &bench->values[rank];

    cr_assert(rondo_all_reduce(value, value, 1, RONDO_INT32, RONDO_SUM, bench->comms[pair][rank],
                               bench->streams[rank]) == RONDO_OK);
}

static void record(struct bench *bench, int event)
{
    cr_assert(rondo_event_record(bench->events[event], bench->streams[0]) == RONDO_OK);
}

Test(bindings, each_call_of_a_stream_has_an_outcome_of_its_own)
{
    struct bench bench = {0};

    bench_open(&bench);
    call(&bench, 0, 0);
    record(&bench, 0);
    call(&bench, 0, 1);
    cr_expect(rondo_event_outcome(bench.events[0], -1) == RONDO_OK);
    call(&bench, 0, 0);
    record(&bench, 1);
    call(&bench, 1, 0);
    record(&bench, 2);
    cr_assert(rondo_comm_abort(bench.comms[0][1]) == RONDO_OK);
    call(&bench, 1, 1);
    cr_expect(rondo_event_outcome(bench.events[2], -1) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int again = 0; again < 2; again++) {
        cr_expect(rondo_event_outcome(bench.events[1], 0) == RONDO_ERROR_ABORTED);
        cr_expect(strstr(rondo_last_error(NULL), "Rank 1 aborted"), "%s", rondo_last_error(NULL));
    }
    cr_expect(rondo_event_outcome(bench.events[0], 0) == RONDO_OK);
    cr_expect(rondo_stream_synchronize(bench.streams[0]) == RONDO_ERROR_ABORTED,
              "that asking for outcomes does not change");
    bench_close(&bench);
}

Test(bindings, an_outcome_is_waited_for_as_long_as_the_caller_says)
{
    struct bench bench = {0};

    bench_open(&bench);
    cr_expect(rondo_event_outcome(bench.events[0], 0) == RONDO_OK, "it was never recorded");
    call(&bench, 0, 0);
    record(&bench, 0);
    cr_expect(rondo_event_outcome(bench.events[0], 0) == RONDO_IN_PROGRESS);
    cr_expect(rondo_event_outcome(bench.events[0], 0.02) == RONDO_IN_PROGRESS);
    call(&bench, 0, 1);
    cr_expect(rondo_event_outcome(bench.events[0], 1e300) == RONDO_OK);
    cr_expect(rondo_event_outcome(NULL, 0) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "rondo_event_outcome"));
    bench_close(&bench);
}

struct future {
    rondo_event *event;
    _Atomic int outcome; /* -1: not yet */
};

static void complete(void *context)
{
    struct future *future = context;

    atomic_store_explicit(&future->outcome, (int)rondo_event_outcome(future->event, 0),
                          memory_order_release);
}

Test(bindings, a_function_behind_the_event_completes_a_future)
{
    struct bench bench = {0};
    struct future futures[2];

    bench_open(&bench);
    for (int i = 0; i < 2; i++) {
        futures[i] = (struct future){bench.events[i], -1};
        call(&bench, i, 0);
        record(&bench, i);
        cr_assert(rondo_stream_call(bench.streams[0], complete, &futures[i]) == RONDO_OK);
    }
    cr_assert(rondo_comm_abort(bench.comms[0][1]) == RONDO_OK);
    call(&bench, 1, 1);
    rondo_stream_synchronize(bench.streams[0]);
    cr_expect_eq(atomic_load_explicit(&futures[0].outcome, memory_order_acquire),
                 RONDO_ERROR_ABORTED);
    cr_expect_eq(atomic_load_explicit(&futures[1].outcome, memory_order_acquire), RONDO_OK);
    bench_close(&bench);
}

static rondo_result lose_rank_1(rondo_comm *comm, void *argument, char *sentence)
{
    int32_t value = 1;
    rondo_stream *stream = NULL;
    rondo_event *event = NULL;
    rondo_result result = rondo_stream_open(&stream);

    (void)argument;
    if (!result)
        result = rondo_event_open(&event);
    if (!result && rondo_comm_rank(comm) == 1)
        kill(getpid(), SIGKILL);
    if (!result)
        result = rondo_all_reduce(&value, &value, 1, RONDO_INT32, RONDO_SUM, comm, stream);
    if (!result)
        result = rondo_event_record(event, stream);
    if (!result)
        result = rondo_event_outcome(event, -1);
    world_say(sentence, result, "%s", rondo_last_error(NULL));
    rondo_event_close(event);
    rondo_stream_close(stream);
    return result;
}

Test(bindings, the_outcome_names_a_rank_that_was_killed)
{
    world_run_processes(3, lose_rank_1, NULL, &report);
    for (int r = 0; r < 3; r += 2) {
        cr_expect(report.results[r] == RONDO_ERROR_PEER, "%s", report.summary);
        cr_expect(strstr(report.sentences[r], "ank 1"), "%s", report.summary);
    }
}

/* ---- Ids ------------------------------------------------------------------------------------- */

static void expect_meeting(const char *address)
{
    enum { RANKS = 3 };
    rondo_comm *comms[RANKS] = {NULL};
    rondo_unique_id id;

    cr_assert(rondo_unique_id_create_at(address, 60, &id) == RONDO_OK, "%s",
              rondo_last_error(NULL));
    cr_assert(rondo_group_start() == RONDO_OK);
    for (int r = 0; r < RANKS; r++)
        cr_assert(rondo_comm_open_id(&id, RANKS, r, NULL, &comms[r]) == RONDO_OK);
    cr_assert(rondo_group_end() == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < RANKS; r++) {
        cr_expect(rondo_comm_rank(comms[r]) == r && rondo_comm_size(comms[r]) == RANKS);
        rondo_comm_close(comms[r]);
    }
}

Test(bindings, ranks_meet_at_the_address_of_an_id)
{
    expect_meeting("127.0.0.1:0");
    setenv("RONDO_INTERFACE", "lo", 1);
    expect_meeting(NULL);
}

/* The address that is set needs no interface. */
Test(bindings, an_id_for_other_hosts_is_at_the_address_that_is_set)
{
    rondo_unique_id id;

    setenv("RONDO_INTERFACE", "none-such", 1);
    cr_expect(rondo_unique_id_create_at(NULL, 60, &id) != RONDO_OK);
    setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    cr_expect(rondo_unique_id_create_at(NULL, 60, &id) == RONDO_OK, "%s", rondo_last_error(NULL));
    unsetenv("RONDO_INTERFACE");
    expect_meeting(NULL);
    setenv("RONDO_ADDRESS", "127.0.0.1", 1);
    cr_expect(rondo_unique_id_create_at(NULL, 60, &id) == RONDO_ERROR_INVALID);
    expect_meeting("");
}

Test(bindings, an_id_waits_as_long_as_it_was_told)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_unique_id id;
    rondo_comm *comm = NULL;

    config.timeout = 100;
    cr_assert(rondo_unique_id_create_at("127.0.0.1:0", 3, &id) == RONDO_OK);
    cr_expect(rondo_comm_open_id(&id, 2, 0, &config, &comm) == RONDO_ERROR_TIMEOUT, "%s",
              rondo_last_error(NULL));
    cr_expect(strstr(rondo_last_error(NULL), "1"), "who is missing: %s", rondo_last_error(NULL));
}

Test(bindings, addresses_where_nobody_can_meet_are_refused)
{
    static const char *const wrong[] = {"127.0.0.1", "0.0.0.0:0", "[::]:0", "host:port", ":"};
    rondo_unique_id id;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        cr_expect(rondo_unique_id_create_at(wrong[i], 1, &id) == RONDO_ERROR_INVALID, "%s",
                  wrong[i]);
        cr_expect(rondo_last_error(NULL)[0], "%s", wrong[i]);
    }
    cr_expect(rondo_unique_id_create_at("127.0.0.1:0", 1, NULL) == RONDO_ERROR_INVALID);
}
