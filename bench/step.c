/* SPDX-License-Identifier: BSD-3-Clause */
/* step.c - the lines of a step, each call of which has buffers of its own. */
#include "bench/step.h"

#include "bench/device.h"
#include "bench/work.h"

#include <stdio.h>

/* Returns false if the line computes. */
static bool call_of(const struct bench_command *command, const struct bench_line *line,
                    struct bench_call *ret_call)
{
    if (line->collective < 0)
        return false;
    *ret_call = command->call;
    ret_call->collective = (enum bench_collective)line->collective;
    ret_call->type = (rondo_type)line->type;
    ret_call->op = (rondo_op)line->op;
    ret_call->root = line->root;
    ret_call->count = (size_t)line->count;
    return true;
}

static bool is_together(const struct bench_command *command)
{
    return command->background || command->communicators > 1;
}

const char *step_lacks(const struct measure *measure, const struct bench_command *command)
{
    const struct bench_library *library = measure->library;
    const char *lack = NULL;
    struct bench_call call;

    if (bench_collective_is_of_pairs(command->call.collective) && measure->size < 2)
        return "there is no pair of ranks: it takes two";
    if (is_together(command) && !library->start)
        return "no calls that go on together are asked of this library here";
    if (!library->lacks)
        return NULL;
    if (!command->line_count)
        return library->lacks(measure->state, &command->call);
    for (int i = 0; i < command->line_count && !lack; i++)
        if (call_of(command, &command->lines[i], &call))
            lack = library->lacks(measure->state, &call);
    return lack;
}

size_t step_bytes(const struct measure *measure, const struct bench_command *command)
{
    struct bench_call call;
    size_t bytes = 0;

    for (int i = 0; i < command->line_count; i++)
        if (call_of(command, &command->lines[i], &call))
            bytes += measure_stride(measure, &call);
    return bytes;
}

/* One line; `offset` of its buffers in the areas moves on. */
static int run_line(struct measure *measure, const struct bench_command *command,
                    const struct bench_line *line, size_t *offset)
{
    const struct bench_library *library = measure->library;
    struct bench_call call;
    struct spot spot;

    if (!call_of(command, line, &call)) {
        if (command->part != BENCH_CALLS_ONLY)
            work_do(&measure->speed, line->seconds);
        return 0;
    }
    spot = measure_spot(measure, measure->areas, &call, *offset);
    *offset += measure_stride(measure, &call);
    if (command->part == BENCH_WORK_ONLY)
        return 0;
    if (is_together(command))
        return library->start(measure->state, &call, line->communicator, spot.input, spot.output);
    return library->run(measure->state, &call, spot.input, spot.output);
}

int step_run(struct measure *measure, const struct bench_command *command, size_t turn)
{
    const struct bench_library *library = measure->library;
    bool together = is_together(command) && command->part != BENCH_WORK_ONLY;
    size_t offset = turn * step_bytes(measure, command);
    int failed = 0;

    if (together)
        failed = library->begin(measure->state, command->communicators, command->background);
    if (failed)
        return failed;
    for (int i = 0; i < command->line_count && !failed; i++)
        failed = run_line(measure, command, &command->lines[i], &offset);
    if (together && library->finish(measure->state))
        failed = -1;
    return failed;
}

/* Writes the calls of a command as a step: a command without lines has one. */
static void take_calls(const struct bench_command *command, struct bench_command *ret_calls)
{
    const struct bench_call *call = &command->call;

    *ret_calls = *command;
    ret_calls->part = BENCH_CALLS_ONLY;
    if (command->line_count)
        return;
    ret_calls->line_count = 1;
    ret_calls->lines[0] = (struct bench_line){.collective = (int)call->collective,
                                              .type = (int)call->type,
                                              .op = (int)call->op,
                                              .root = call->root,
                                              .count = call->count};
}

static void prepare(const struct measure *measure, const struct bench_command *calls)
{
    struct bench_call call;
    size_t offset = 0;

    for (int i = 0; i < calls->line_count; i++)
        if (call_of(calls, &calls->lines[i], &call)) {
            struct spot view = measure_spot(measure, measure->views, &call, offset);

            measure_prepare(measure, &call, &view);
            offset += measure_stride(measure, &call);
        }
}

static uint64_t count_wrong(const struct measure *measure, const struct bench_command *calls)
{
    struct bench_call call;
    uint64_t wrong = 0;
    size_t offset = 0;

    for (int i = 0; i < calls->line_count; i++)
        if (call_of(calls, &calls->lines[i], &call)) {
            struct spot view = measure_spot(measure, measure->views, &call, offset);

            wrong += measure_count_wrong(measure, &call, &view);
            offset += measure_stride(measure, &call);
        }
    return wrong;
}

/* All calls of the step at once: what goes on together must not mix. */
static void check(struct measure *measure, const struct bench_command *calls, bool graph,
                  struct bench_reply *reply)
{
    size_t turn = 0;
    int failed;

    prepare(measure, calls);
    /* Allocating and copying may wait for a device, and so for calls of ranks that share it. */
    failed = measure_carry(measure, true) || (measure->device && measure_meet(measure)) ? -1 : 0;
    if (!failed)
        failed = graph ? measure_record(measure, calls, 1, &turn) : step_run(measure, calls, 0);
    if (!failed && calls->call.queued)
        failed = device_wait(measure->device) ? -1 : 0;
    if (failed == BENCH_NO_SUCH_CALL) {
        reply->status = BENCH_UNAVAILABLE;
        snprintf(reply->sentence, sizeof(reply->sentence), "%s",
                 measure->library->error(measure->state));
    } else if (failed || measure_carry(measure, false)) {
        measure_fail(measure, reply, graph ? "the checked graph" : "the checked call");
    } else {
        reply->wrong += count_wrong(measure, calls);
    }
}

void step_check(struct measure *measure, const struct bench_command *command,
                struct bench_reply *reply)
{
    struct bench_command calls;

    take_calls(command, &calls);
    check(measure, &calls, false, reply);
    /* What a graph does is not what its calls do one by one. */
    if (command->graph && reply->status == BENCH_OK)
        check(measure, &calls, true, reply);
}
