/* SPDX-License-Identifier: BSD-3-Clause */
/* pace.c - how many calls make a batch, how many batches a round, and running them. */
#include "cli/bench/pace.h"

#include "base/clock.h"
#include "cli/bench/steps.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLS_MAX         100000      /* per batch */
#define COLD_DEVICE_BYTES (256 << 20) /* more than twice what a GPU's last cache holds */

static int clamp(double value, int low, int high)
{
    return value < low ? low : value > high ? high : (int)value;
}

/*
 * Twice the largest cache, so that a walk never finds what it left; 64 MiB if the system does not
 * say.
 */
static size_t cold_bytes(void)
{
    static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                 _SC_LEVEL2_CACHE_SIZE};

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (sysconf(levels[i]) > 0)
            return 2 * (size_t)sysconf(levels[i]);
    return 64 << 20;
}

void pace_init(struct pace *pace, const struct bench_sweep *sweep, int library, uint64_t largest)
{
    const struct bench_options *options = sweep->options;
    struct bench_command *command = &pace->command;
    bool rondo = bench_kinds[options->libraries[library]].rondo;
    bool cuda = options->memory == BENCH_MEMORY_CUDA;

    *pace = (struct pace){.batches = pace->batches, .room = pace->room};
    command->call = options->call;
    command->call.count = sweep->sizes[sweep->size_count].count;
    if (!rondo)
        command->call.algorithm[0] = 0;
    command->memory = rondo || cuda ? options->memory : BENCH_MEMORY_HOST;
    command->call.queued = cuda && !options->blocking;
    command->graph = options->graph;
    command->buffer_bytes = largest;
    command->rotate_bytes = !options->cold ? 0 : cuda ? COLD_DEVICE_BYTES : cold_bytes();
    command->rewrite = options->rewrite;
    command->batches = 1;
    command->batch_calls = 1;
    command->buffers = options->buffers;
    command->divisor = bench_messages(options->call.collective);
    if (bench_has_steps(options))
        bench_steps_write(options, command, sweep->groups[0].size);
}

void pace_done(struct pace *pace)
{
    free(pace->batches);
    *pace = (struct pace){0};
}

/* Makes room for the batches of one more command. 0, or -1 with a sentence on stderr. */
static int make_room(struct pace *pace)
{
    int room = 2 * pace->count + BENCH_BATCHES_MAX;
    double *larger;

    if (pace->count + BENCH_BATCHES_MAX <= pace->room)
        return 0;
    larger = realloc(pace->batches, (size_t)room * sizeof(*larger));
    if (!larger) {
        fprintf(stderr, "rondo bench: out of memory\n");
        return -1;
    }
    pace->batches = larger;
    pace->room = room;
    return 0;
}

static enum bench_status run_command(struct pace *pace, struct bench_group *group,
                                     struct bench_reply *replies)
{
    enum bench_status status =
        make_room(pace) ? BENCH_FAILED : bench_group_run(group, &pace->command, replies);

    for (int batch = 0; status == BENCH_OK && batch < pace->command.batches; batch++) {
        double fastest = bench_fastest(group, replies, batch);

        pace->batches[pace->count++] = bench_slowest(group, replies, batch);
        pace->rank_ratios += fastest > 0 ? pace->batches[pace->count - 1] / fastest : 1;
    }
    return status;
}

enum bench_status pace_run(struct pace *pace, struct bench_group *group,
                           struct bench_reply *replies)
{
    double end = clock_seconds() + pace->round_seconds;
    int left = pace->round_batches;
    enum bench_status status;

    do {
        pace->command.batches = left < BENCH_BATCHES_MAX ? left : BENCH_BATCHES_MAX;
        status = run_command(pace, group, replies);
        left -= pace->command.batches;
    } while (status == BENCH_OK && left > 0 && (!pace->round_seconds || clock_seconds() < end));
    return status;
}

void pace_set(struct pace *pace, const struct bench_options *options, double seconds)
{
    struct bench_command *command = &pace->command;
    double round = options->seconds / options->rounds;

    if (command->divisor > 1)
        seconds *= command->divisor;
    command->batch_calls = 1;
    pace->round_seconds = 0;
    if (options->iterations && options->rewrite) {
        pace->round_batches = options->iterations;
    } else if (options->iterations) {
        pace->round_batches = 1;
        command->batch_calls = options->iterations;
    } else {
        if (!options->rewrite)
            command->batch_calls = clamp(MEASURE_BATCH / seconds, 1, CALLS_MAX);
        pace->round_batches = clamp(round / seconds / command->batch_calls, 1, INT_MAX);
        pace->round_seconds = round;
    }
}

/* The shortest time of a call in some batches: what else the machine does can only lengthen it. */
static enum bench_status probe(struct pace *pace, struct bench_group *group,
                               struct bench_reply *replies)
{
    enum bench_status status;

    pace->count = 0;
    status = pace_run(pace, group, replies);
    if (status == BENCH_OK)
        bench_median(pace->batches, pace->count); /* sorts */
    return status;
}

enum bench_status pace_warm_up(struct pace *pace, const struct bench_options *options,
                               struct bench_group *group, struct bench_reply *replies)
{
    struct bench_command *command = &pace->command;
    enum bench_status status;
    double seconds = 0;

    pace->round_batches = options->warmup > 1 ? options->warmup : 1;
    status = probe(pace, group, replies);
    if (status == BENCH_OK)
        seconds = pace->batches[0] * (command->divisor > 1 ? command->divisor : 1);
    if (status == BENCH_OK && !command->rewrite && seconds < MEASURE_BATCH) {
        /* Once more with calls in a row, which do not start with what a barrier leaves. */
        command->batch_calls = clamp(MEASURE_BATCH / (seconds + 1e-9), 1, CALLS_MAX);
        pace->round_batches = clamp(options->warmup, 1, BENCH_BATCHES_MAX);
        status = probe(pace, group, replies);
    }
    if (status == BENCH_OK) {
        pace->call_seconds = pace->batches[0] + 1e-9;
        pace_set(pace, options, pace->call_seconds);
    }
    pace->count = 0;
    pace->rank_ratios = 0;
    return status;
}
