/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_limit.c - what the machine can do for that many ranks in three figures: how long a cache
 * line takes to cross, how fast memory is copied, and how fast vectors are summed without a copy.
 *
 * The vectors of the last two are more than the last cache holds. The fastest of some batches
 * counts, for what else the machine does can only slow them down.
 */
#include "cli/bench_limit.h"

#include "bench/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCHES = 5, ROUNDS = 1000, MIB = 1 << 20, LEAST = 16 * MIB, MOST = 64 * MIB };

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
        double slowest = 0;

        for (int rank = 0; rank < group->size; rank++)
            if (replies[rank].seconds[batch] > slowest)
                slowest = replies[rank].seconds[batch];
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

int bench_limit_measure(struct bench_group *group, struct bench_limit *ret_limit)
{
    struct bench_reply *replies = calloc((size_t)group->size, sizeof(*replies));
    struct bench_limit limit = {.bytes = vector_bytes(group->size)};
    int failed = -1;

    if (replies)
        failed = measure(group, &limit, replies);
    else
        fprintf(stderr, "rondo bench: out of memory\n");
    free(replies);
    if (!failed)
        *ret_limit = limit;
    return failed;
}
