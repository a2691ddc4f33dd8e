/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_measure.c - on which buffers calls are timed: a library notes where they are. */
#include "bench/measure.h"

#include "bench/work.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 6 };

static const void *inputs[64];
static int noted;

void *bench_plain_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

static int note(void *state, const struct bench_call *call, const void *input, void *output)
{
    if (call->collective != BENCH_BARRIER && noted < 64)
        inputs[noted++] = input;
    return 0;
}

static const struct bench_library library = {.run = note};
static struct bench_command command = {
    .call = {.collective = BENCH_ALL_REDUCE, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = 2},
    .buffer_bytes = 8,
    .batches = 2,
    .batch_calls = CALLS / 2};

static void time_some(struct measure *measure)
{
    static struct bench_reply reply;

    measure_run(measure, &command, &reply);
    cr_assert_eq(reply.status, BENCH_OK, "%s", reply.sentence);
}

/* A command has fewer calls than there are places: the next one must not find what it left. */
Test(bench_measure, a_walk_through_cold_memory_goes_on_from_command_to_command)
{
    struct measure measure = {.library = &library, .size = 2};

    command.buffers = 1;
    command.rotate_bytes = 1 << 20;
    for (int round = 0; round < 3; round++)
        time_some(&measure);
    cr_assert_eq(noted, 3 * CALLS);
    for (int i = 1; i < noted; i++)
        cr_expect_gt(inputs[i], inputs[i - 1], "call %d", i);
    measure_done(&measure);
}

Test(bench_measure, calls_take_turns_on_as_many_buffers_as_were_asked_for)
{
    struct measure measure = {.library = &library, .size = 2};

    command.buffers = 4;
    for (int round = 0; round < 2; round++)
        time_some(&measure);
    cr_assert_eq(noted, 2 * CALLS);
    for (int i = 1; i < noted; i++)
        cr_expect_eq(inputs[i] == inputs[i % 4], true, "call %d", i);
    cr_expect_neq(inputs[0], inputs[3]);
    command.buffers = 1; /* less than the turn that the last command has come to */
    noted = 0;
    time_some(&measure);
    cr_assert_eq(noted, CALLS);
    for (int i = 0; i < noted; i++)
        cr_expect_eq(inputs[i], inputs[0], "call %d", i);
    measure_done(&measure);
}

/* A batch that learnt it would take ten milliseconds longer than its calls. */
Test(bench_measure, the_speed_of_computing_is_known_before_a_clock_runs)
{
    struct measure measure = {.library = &library, .size = 2};

    command.buffers = 1;
    command.check = true;
    command.line_count = 2;
    command.lines[0] =
        (struct bench_line){.collective = BENCH_ALL_REDUCE, .type = RONDO_FLOAT32, .count = 2};
    command.lines[1] = (struct bench_line){.collective = -1};
    time_some(&measure);
    cr_expect_gt(measure.speed, 0);
    measure_done(&measure);
}

Test(bench_measure, buffers_of_another_run_are_not_what_the_library_takes)
{
    struct measure measure = {.library = &library, .size = 2, .before = work_memory()};
    static struct bench_reply reply;

    command.check = true;
    command.buffer_bytes = 64 << 20;
    command.call.count = command.buffer_bytes / sizeof(float);
    time_some(&measure);
    command.buffer_bytes = command.call.count = 0;
    command.rotate_bytes = 64 << 20;
    command.call.collective = BENCH_DUP;
    measure_run(&measure, &command, &reply);
    cr_assert_eq(reply.status, BENCH_OK, "%s", reply.sentence);
    cr_expect_gt(reply.rank_bytes, 0);
    cr_expect_lt(measure.area_bytes, 32 << 20, "%zu", measure.area_bytes);
    measure_done(&measure);
}
