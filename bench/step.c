/* SPDX-License-Identifier: BSD-3-Clause */
/* step.c - the lines of a step, each call of which has buffers of its own. */
#include "bench/step.h"

#include "bench/work.h"

#include <string.h>

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

/* All calls of the step at once: what goes on together must not mix. */
static void check_together(struct measure *measure, const struct bench_command *command,
                           struct bench_reply *reply)
{
    struct bench_command calls = *command;
    struct bench_call call;
    size_t offset = 0;

    calls.part = BENCH_CALLS_ONLY;
    for (int i = 0; i < command->line_count; i++)
        if (call_of(command, &command->lines[i], &call)) {
            struct spot spot = measure_spot(measure, measure->areas, &call, offset);

            measure_prepare(measure, &call, &spot);
            offset += measure_stride(measure, &call);
        }
    if (step_run(measure, &calls, 0)) {
        measure_fail(measure, reply, "the checked step");
        return;
    }
    offset = 0;
    for (int i = 0; i < command->line_count; i++)
        if (call_of(command, &command->lines[i], &call)) {
            struct spot spot = measure_spot(measure, measure->areas, &call, offset);

            reply->wrong += measure_count_wrong(measure, &call, &spot);
            offset += measure_stride(measure, &call);
        }
}

void step_check(struct measure *measure, const struct bench_command *command,
                struct bench_reply *reply)
{
    struct bench_call call;

    if (measure->memory != BENCH_MEMORY_CUDA) {
        check_together(measure, command, reply);
        return;
    }
    for (int i = 0; i < command->line_count && reply->status == BENCH_OK; i++)
        if (call_of(command, &command->lines[i], &call))
            measure_check(measure, &call, reply);
}
