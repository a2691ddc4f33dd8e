/* SPDX-License-Identifier: BSD-3-Clause */
/* test_health.c - sentences about waits that will not end: every kind names the rank to blame. */
#include "base/fail.h"
#include "comm/engine/call.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/mismatch.h"
#include "transport/link/connection.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static rondo_comm *comms[3];
static struct task task;
static int32_t values[3];

/* Rank 0 is in call 1, an all_reduce, and waits for rank 1. */
static void open_three(void)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct call_record record = {.fingerprint = 1, .collective = RONDO_ALL_REDUCE, .count = 5};
    rondo_call call = {sizeof(call), RONDO_ALL_REDUCE, RONDO_INT8, RONDO_SUM, 0,
                       values,       values,           1,          NULL,      NULL,
                       NULL};

    config.timeout = 9;
    setenv("RONDO_COSTS", "1,1,1", 1);
    cr_assert(rondo_comm_open_all(3, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    call.comm = comms[0];
    cr_assert(call_check(&call, &task) == RONDO_OK);
    task.key.count = 5;
    task.state = TASK_RUNNING;
    cr_assert(plan_open(RONDO_ALL_REDUCE, "trial", 3, 0, 0, (struct plan **)&task.execution.plan) ==
              RONDO_OK);
    plan_await((struct plan *)task.execution.plan, 1, 0, 0);
    task.execution.world = &comms[0]->world;
    task.execution.shape = (struct exec_shape){.count = 5, .element = 1, .segment = 5, .grain = 1};
    exec_start(&task.execution);
    task.execution.blamed = 1;
    comms[0]->calls++;
    call_header_begin(&comms[0]->status_pages[0]->call, comms[0]->calls, &record, false);
}

static void close_three(void)
{
    plan_close((struct plan *)task.execution.plan);
    for (int r = 0; r < 3; r++)
        rondo_comm_close(comms[r]);
}

TestSuite(health, .init = open_three, .fini = close_three);

static void peer_calls(int rank, struct call_record record)
{
    call_header_begin(&comms[rank]->status_pages[rank]->call, comms[0]->calls, &record, false);
}

static void expect_sentence(const char *part)
{
    cr_expect(strstr(rondo_last_error(comms[0]), part), "\"%s\" is not in: %s", part,
              rondo_last_error(comms[0]));
    cr_expect(rondo_comm_query(comms[0]) != RONDO_OK, "it is broken now");
}

Test(health, a_sound_wait_goes_on)
{
    cr_expect(health_check(comms[0], &task, 1) == RONDO_OK);
    cr_expect(health_adopt(comms[0]) == RONDO_OK);
    cr_expect(rondo_comm_query(comms[0]) == RONDO_OK);
}

Test(health, a_silent_peer_that_made_no_call_is_named_with_the_step)
{
    cr_expect(health_check(comms[0], &task, 9.5) == RONDO_ERROR_TIMEOUT);
    expect_sentence("Rank 0 has waited 9.5 s for rank 1 in all_reduce of 5 int8, sum");
    expect_sentence("wait for a message from rank 1");
    expect_sentence(" has not made this call");
    expect_sentence("RONDO_TIMEOUT");
}

static void open_three_without_records(void)
{
    setenv("RONDO_RECORDER", "0", 1);
    setenv("RONDO_RECORDER_DIR", "/nonexistent", 1);
    setenv("RONDO_LOG", "warn", 1); /* a table of records is to be written */
    open_three();
}

Test(health_records, the_sentence_is_of_the_wait_where_no_records_can_be_read,
     .init = open_three_without_records, .fini = close_three)
{
    cr_expect(health_check(comms[0], &task, 9.5) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(fail_sentence(), "Rank 0 has waited 9.5 s"), "%s", fail_sentence());
    expect_sentence("Rank 0 has waited 9.5 s for rank 1 in all_reduce of 5 int8, sum");
    cr_expect(health_adopt(comms[2]) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(rondo_last_error(comms[2]), "Rank 0 has waited 9.5 s"), "%s",
              rondo_last_error(comms[2]));
}

Test(health, a_silent_peer_in_the_same_call_is_named)
{
    peer_calls(1, (struct call_record){.fingerprint = 1});
    peer_calls(2, (struct call_record){.fingerprint = 1});
    cr_expect(health_check(comms[0], &task, 10) == RONDO_ERROR_TIMEOUT);
    expect_sentence(" is in the same call");
}

Test(health, the_silent_peer_is_found_also_when_numbers_of_calls_have_wrapped)
{
    struct call_record record = {.fingerprint = 1, .collective = RONDO_ALL_REDUCE, .count = 5};
    uint32_t call = (uint32_t)1 << 31;

    comms[0]->calls = call;
    call_header_begin(&comms[0]->status_pages[0]->call, call, &record, false);
    call_header_begin(&comms[1]->status_pages[1]->call, call, &record, false);
    call_header_begin(&comms[2]->status_pages[2]->call, call - 1, &record, false);
    cr_assert(health_check(comms[0], &task, 9.5) == RONDO_ERROR_TIMEOUT);
    expect_sentence("for rank 2");
    expect_sentence("has not made this call");
}

Test(health, a_message_without_its_counterpart_is_named)
{
    task.key.collective = RONDO_RECV;
    cr_expect(health_check(comms[0], &task, 10) == RONDO_ERROR_TIMEOUT);
    expect_sentence("has made no matching call");
}

Test(health, without_a_timeout_a_wait_may_last)
{
    atomic_store_explicit(&comms[0]->timeout, 0, memory_order_relaxed);
    cr_expect(health_check(comms[0], &task, 1e9) == RONDO_OK);
}

Test(health, what_broke_a_peer_breaks_us_with_its_sentence_and_culprit)
{
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
    int culprit = -1;

    rondo_fail(RONDO_ERROR_PEER, "Rank 7 has fallen over.");
    comm_break(comms[2], RONDO_ERROR_PEER, 7);
    cr_expect(health_check(comms[0], &task, 0) == RONDO_ERROR_PEER);
    expect_sentence("Rank 7 has fallen over.");
    result = status_failure(comms[0]->status_pages[0], &culprit, sentence);
    cr_expect(result == RONDO_ERROR_PEER && culprit == 7, "and those who look at us see it too");
    cr_expect(comm_check(comms[0]) == RONDO_ERROR_PEER);
    cr_expect(strstr(fail_sentence(), "Rank 7"), "%s", fail_sentence());
}

Test(health, a_peer_that_calls_something_else_is_named_with_both_calls)
{
    peer_calls(2, (struct call_record){.fingerprint = 2,
                                       .collective = RONDO_BROADCAST,
                                       .type = RONDO_FLOAT64,
                                       .root = 1,
                                       .count = 8});
    cr_expect(health_check(comms[0], &task, 0) == RONDO_ERROR_MISMATCH);
    expect_sentence("rank 0 called all_reduce of 5 int8, sum");
    expect_sentence("rank 2 called broadcast of 8 float64, root 1");
}

Test(health, the_first_call_that_differs_is_named_where_both_are_in_a_later_one)
{
    struct call_record record = {.fingerprint = 3, .collective = RONDO_ALL_REDUCE, .count = 5};

    peer_calls(1, (struct call_record){.fingerprint = 2, .collective = RONDO_BROADCAST});
    comms[0]->calls++;
    call_header_begin(&comms[0]->status_pages[0]->call, comms[0]->calls, &record, false);
    record.fingerprint = 4;
    peer_calls(1, record);
    cr_expect(health_check(comms[0], &task, 1) == RONDO_ERROR_MISMATCH);
    expect_sentence("Call 1 of the communicator differed");
    expect_sentence("rank 1 called broadcast");
}

Test(health, peers_that_ask_for_different_algorithms_are_told_so)
{
    peer_calls(
        1, (struct call_record){
               .fingerprint = 3, .collective = RONDO_ALL_REDUCE, .type = RONDO_INT8, .count = 5});
    cr_expect(mismatch_found(comms[0], &task) == RONDO_ERROR_MISMATCH);
    expect_sentence("different algorithms");
}

Test(health, a_message_of_another_call_is_described_even_if_the_status_says_nothing)
{
    cr_expect(mismatch_found(comms[0], &task) == RONDO_ERROR_MISMATCH);
    expect_sentence("Rank 0 called all_reduce of 5 int8, sum with rank 1");
}

Test(health, garbage_on_a_status_gives_a_printable_sentence)
{
    struct status *status = comms[1]->status_pages[1];

    for (int i = 0; i < FAIL_SENTENCE_MAX; i++)
        atomic_store_explicit(&status->sentence[i], (char)(1 + i % 255), memory_order_release);
    atomic_store_explicit(&status->failed, 0xdeadbeef, memory_order_release);
    cr_expect(health_adopt(comms[0]) == RONDO_ERROR_INTERNAL);
    for (const char *at = rondo_last_error(comms[0]); *at; at++)
        cr_assert(*at >= ' ' && *at <= '~');
}

Test(health, status_pages_of_other_communicators_are_left_alone)
{
    atomic_store_explicit(&comms[1]->status_pages[1]->id, 12345, memory_order_release);
    atomic_store_explicit(&comms[1]->status_pages[1]->failed, RONDO_ERROR_PEER,
                          memory_order_release);
    cr_expect(health_adopt(comms[0]) == RONDO_OK);
    cr_expect(health_check(comms[0], &task, 10) == RONDO_ERROR_TIMEOUT);
    expect_sentence(" has not made this call");
}

static int looks;

static rondo_result look(struct network *network, bool *ret_moved)
{
    (void)network;
    looks++;
    *ret_moved = false;
    return RONDO_OK;
}

/* A watchdog asks like this: networks belong to the thread whose call has the turn. */
Test(health, who_asks_during_a_call_leaves_networks_alone)
{
    const struct network_ops ops = {.progress = look};
    struct network network = {.ops = &ops};
    unsigned ticket;

    comms[0]->networks.open[0] = &network;
    cr_assert(turn_take_idle(&comms[0]->turn, &ticket));
    cr_expect(rondo_comm_query(comms[0]) == RONDO_OK);
    cr_expect_eq(looks, 0);
    turn_pass(&comms[0]->turn);
    cr_expect(rondo_comm_query(comms[0]) == RONDO_OK);
    cr_expect_eq(looks, 1);
    cr_expect(turn_idle(&comms[0]->turn), "the turn was passed on");
    comms[0]->networks.open[0] = NULL;
}

Test(health, a_communicator_without_a_sentence_still_says_what_kind_of_error)
{
    atomic_store_explicit(&comms[0]->broken, RONDO_ERROR_TIMEOUT, memory_order_release);
    cr_expect(comm_check(comms[0]) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(rondo_last_error(comms[0]), "silent"), "%s", rondo_last_error(comms[0]));
    cr_expect(rondo_comm_query(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_abort(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_local_rank(NULL) == -1 && rondo_comm_local_size(NULL) == -1);
    cr_expect(rondo_comm_local_rank(comms[2]) == 2 && rondo_comm_local_size(comms[2]) == 3);
}

/* A long message waits in the ring of slots while a short one is expected in the other ring. */
Test(health, a_message_of_another_form_is_one_of_another_call)
{
    struct link_in *in = &comms[0]->world.in[1];
    struct link_slot *next = (struct link_slot *)(void *)(in->slots + in->index * in->stride);

    task.execution.shape.lines = 1;
    cr_expect(health_check(comms[0], &task, 1) == RONDO_OK);
    atomic_store_explicit(&next->head.flag, (uint64_t)99 << 32 | (in->received + 1),
                          memory_order_release);
    cr_expect(health_check(comms[0], &task, 1) == RONDO_ERROR_MISMATCH);
    expect_sentence("from there belongs to another call");
}
