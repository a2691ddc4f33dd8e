/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit.c - what the machine can do for that many ranks in few figures: how long a cache
 * line takes to cross, how fast memory is copied, and how fast vectors are summed without a copy.
 *
 * The vectors of the last two are more than the last cache holds. The fastest of some batches
 * counts, for what else the machine does can only slow them down.
 */
#include "cli/bench/sweep.h"

#include "bench/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BATCHES = 5,
    ROUNDS = 1000,
    COPIES = 4,
    MIB = 1 << 20,
    LEAST = 16 * MIB,
    MOST = 64 * MIB,
    DEVICE_MOST = 128 * MIB
};

/* So that inputs and outputs of all ranks are four times what the last cache holds. */
static size_t vector_bytes(int ranks)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = cache > 0 ? 2 * (size_t)cache / (size_t)ranks : MOST;

    bytes = bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes;
    return bytes / MIB * MIB;
}

/* Seconds of a call on the slowest rank, in the fastest batch; negative: failed. */
static double time_of(struct bench_group *group, const struct bench_command *command,
                      struct bench_reply *replies)
{
    double best = -1;

    if (bench_group_run(group, command, replies) != BENCH_OK)
        return -1;
    for (int batch = 0; batch < command->batches; batch++) {
        double slowest = bench_slowest(group, replies, batch);

        if (best < 0 || slowest < best)
            best = slowest;
    }
    return best;
}

static int measure(struct bench_group *group, struct bench_limit *limit,
                   struct bench_reply *replies)
{
    struct bench_command round = {
        .call = {.collective = BENCH_BARRIER, .type = RONDO_UINT8},
        .batches = BATCHES,
        .batch_calls = ROUNDS,
    };
    struct bench_command move = {
        .call = {.collective = BENCH_SENDRECV,
                 .type = RONDO_FLOAT32,
                 .op = RONDO_SUM,
                 .count = limit->bytes / sizeof(float)},
        .batches = BATCHES,
        .batch_calls = 1,
        .buffer_bytes = limit->bytes,
    };
    double line = time_of(group, &round, replies);
    double copy = time_of(group, &move, replies);
    double sum;

    move.call.collective = BENCH_ALL_REDUCE;
    sum = time_of(group, &move, replies);
    if (line < 0 || copy <= 0 || sum <= 0)
        return -1;
    limit->line = line;
    limit->copy = (double)limit->bytes * group->size / copy;
    limit->all_reduce = (double)limit->bytes / sum;
    limit->measured = true;
    return 0;
}

/* A launch as calls are made, and a copy: one rank works on each device. */
static int measure_devices(struct bench_group *group, const struct bench_options *options,
                           struct bench_limit *limit, struct bench_reply *replies)
{
    struct bench_command launch = {
        .call = {.collective = BENCH_BARRIER, .type = RONDO_UINT8, .queued = true},
        .memory = BENCH_MEMORY_CUDA,
        .graph = options->graph,
        .batches = BATCHES,
        .batch_calls = options->blocking ? 1 : ROUNDS,
    };
    struct bench_command copy = {
        .call = {.collective = BENCH_SENDRECV,
                 .type = RONDO_FLOAT32,
                 .count = limit->bytes / sizeof(float),
                 .queued = true},
        .memory = BENCH_MEMORY_CUDA,
        .batches = BATCHES,
        .batch_calls = COPIES,
        .buffer_bytes = limit->bytes,
    };
    double seconds;

    time_of(group, &launch, replies); /* the first launches load what they need */
    limit->launch = time_of(group, &launch, replies);
    seconds = time_of(group, &copy, replies);
    if (limit->launch < 0 || seconds <= 0)
        return -1;
    limit->copy = (double)limit->bytes / seconds;
    limit->devices = group->devices;
    limit->measured = true;
    return 0;
}

/* More than caches hold, but not much of the memory. */
static size_t device_vector_bytes(uint64_t device_bytes)
{
    uint64_t bytes = device_bytes / 64 / MIB * MIB;

    return bytes < MIB ? MIB : bytes > DEVICE_MOST ? DEVICE_MOST : (size_t)bytes;
}

int bench_limit_measure(struct bench_group *group, const struct bench_options *options,
                        struct bench_limit *ret_limit)
{
    struct bench_reply *replies = calloc((size_t)group->size, sizeof(*replies));
    struct bench_limit limit = {.bytes = vector_bytes(group->size)};
    int failed = -1;

    if (!replies) {
        fprintf(stderr, "rondo bench: out of memory\n");
        return -1;
    }
    if (group->devices) {
        limit.bytes = device_vector_bytes(group->device_bytes);
        failed = measure_devices(group, options, &limit, replies);
    } else {
        failed = measure(group, &limit, replies);
    }
    free(replies);
    if (!failed)
        *ret_limit = limit;
    return failed;
}

double bench_limit_seconds(const struct bench_limit *limit, const struct bench_call *call,
                           int ranks)
{
    size_t element = pattern_type_bytes(call->type);
    double seconds = limit->launch;

    for (int device = 0; device < limit->devices && device < ranks; device++) {
        double bytes = 0;

        for (int rank = device; rank < ranks; rank += limit->devices)
            bytes += (double)bench_traffic(call, element, rank, ranks);
        if (bytes / (2 * limit->copy) > seconds) /* a copy reads and writes */
            seconds = bytes / (2 * limit->copy);
    }
    return seconds;
}
