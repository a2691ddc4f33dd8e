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

/*
 * A round of flags, and a copy out of a neighbour's memory; on devices, where one rank works on
 * each, a launch as calls are made, and a copy within the device.
 */
static int measure(struct bench_group *group, const struct bench_options *options,
                   struct bench_limit *limit, struct bench_reply *replies)
{
    bool queued = group->devices > 0;
    enum bench_memory memory = queued ? BENCH_MEMORY_CUDA : BENCH_MEMORY_HOST;
    struct bench_command round = {
        .call = {.collective = BENCH_BARRIER, .type = RONDO_UINT8, .queued = queued},
        .memory = memory,
        .graph = options->graph,
        .batches = BATCHES,
        .batch_calls = options->blocking ? 1 : ROUNDS,
    };
    struct bench_command move = {
        .call = {.collective = BENCH_SENDRECV,
                 .type = RONDO_FLOAT32,
                 .op = RONDO_SUM,
                 .count = limit->bytes / sizeof(float),
                 .queued = queued},
        .memory = memory,
        .batches = BATCHES,
        .batch_calls = queued ? COPIES : 1,
        .buffer_bytes = limit->bytes,
    };
    double first, copy, sum;

    if (queued)
        time_of(group, &round, replies); /* the first launches load what they need */
    first = time_of(group, &round, replies);
    copy = time_of(group, &move, replies);
    move.call.collective = BENCH_ALL_REDUCE;
    sum = queued ? 1 : time_of(group, &move, replies);
    if (first < 0 || copy <= 0 || sum <= 0)
        return -1;
    limit->line = limit->launch = first;
    limit->copy = (double)limit->bytes * (queued ? 1 : group->size) / copy;
    limit->all_reduce = (double)limit->bytes / sum;
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
    int failed;

    if (!replies) {
        fprintf(stderr, "rondo bench: out of memory\n");
        return -1;
    }
    if (group->devices)
        limit.bytes = device_vector_bytes(group->device_bytes);
    failed = measure(group, options, &limit, replies);
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
