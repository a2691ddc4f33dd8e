/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - the lines of a step, and which options go with one. */
#include "cli/bench/steps.h"

#include "bench/pattern.h"

bool bench_has_steps(const struct bench_options *options)
{
    return options->overlap || options->communicators > 1 || options->trace;
}

void bench_steps_check(const struct argp_state *state, const struct bench_options *options)
{
    enum bench_collective collective = options->call.collective;

    if ((collective == BENCH_TRACE) != (options->trace != NULL))
        argp_error(state, "trace is the question of --trace FILE, and of nothing else");
    if (!bench_has_steps(options))
        return;
    if (collective >= BENCH_COLLECTIVES && collective != BENCH_TRACE)
        argp_error(state, "--overlap and --communicators are for collectives, not for %s",
                   bench_collective_name(collective));
    if (options->overlap && options->memory == BENCH_MEMORY_CUDA)
        argp_error(state, "--overlap is for memory of the host: on a device streams overlap");
    if (options->communicators > 1 && (options->overlap || options->trace))
        argp_error(state, "--communicators goes with neither --overlap nor --trace");
    if (options->rewrite || options->graph || options->limit)
        argp_error(state, "--overlap, --communicators and --trace go with none of --rewrite, "
                          "--graph and --limit");
    if (options->trace && options->call.in_place)
        argp_error(state, "the calls of a trace are made out of place");
    for (int i = 0; options->trace && i < options->trace->count; i++)
        if (options->ranks && options->trace->lines[i].root >= options->ranks)
            argp_error(state, "%s has root %d, which is not among the %d ranks",
                       options->trace->name, options->trace->lines[i].root, options->ranks);
}

/* A trace that says nothing of computing gets some behind each call, if there is room for it. */
static bool adds_work(const struct bench_options *options)
{
    const struct bench_trace *trace = options->trace;

    return options->overlap && trace->count == trace->calls && 2 * trace->count <= BENCH_LINES_MAX;
}

static void write_trace(const struct bench_options *options, struct bench_command *command,
                        int ranks)
{
    const struct bench_trace *trace = options->trace;
    bool work = adds_work(options);

    command->line_count = 0;
    for (int i = 0; i < trace->count; i++) {
        struct bench_line *line = &command->lines[command->line_count++];

        *line = trace->lines[i];
        if (line->collective >= 0)
            line->count = bench_count((enum bench_collective)line->collective, line->count,
                                      pattern_type_bytes((rondo_type)line->type), ranks);
        if (work)
            command->lines[command->line_count++] = (struct bench_line){.collective = -1};
    }
}

void bench_steps_write(const struct bench_options *options, struct bench_command *command,
                       int ranks)
{
    const struct bench_call *call = &command->call;
    const struct bench_line line = {.collective = (int)call->collective,
                                    .type = (int)call->type,
                                    .op = (int)call->op,
                                    .root = call->root,
                                    .count = call->count};

    command->background = options->overlap;
    command->communicators = options->communicators;
    if (options->trace) {
        write_trace(options, command, ranks);
        return;
    }
    command->line_count = options->communicators;
    command->divisor = options->communicators;
    for (int i = 0; i < options->communicators; i++) {
        command->lines[i] = line;
        command->lines[i].communicator = i;
    }
    if (options->overlap)
        command->lines[command->line_count++] = (struct bench_line){.collective = -1};
}

bool bench_steps_are_exact(const struct bench_command *command, int ranks)
{
    bool exact = command->line_count || pattern_is_exact(&command->call, ranks);

    for (int i = 0; i < command->line_count; i++) {
        const struct bench_line *line = &command->lines[i];
        const struct bench_call call = {.collective = (enum bench_collective)line->collective,
                                        .type = (rondo_type)line->type,
                                        .op = (rondo_op)line->op};

        exact = exact && (line->collective < 0 || pattern_is_exact(&call, ranks));
    }
    return exact;
}

void bench_steps_set_work(const struct bench_options *options, struct bench_command *command,
                          double seconds)
{
    if (options->trace && !adds_work(options))
        return;
    for (int i = 0; i < command->line_count; i++)
        if (command->lines[i].collective < 0)
            command->lines[i].seconds = seconds / (options->trace ? options->trace->calls : 1);
}
