/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit.h - the figures of the machine that --limit stands on.
 *
 * On the host a worker does each call as well as it can be done (bench/library_limit.c). For device
 * memory the limit is computed: the least bytes that the memory of the busiest device has to move,
 * at the speed of a copy, but no less than a launch.
 */
#ifndef RONDO_CLI_BENCH_LIMIT_H
#define RONDO_CLI_BENCH_LIMIT_H

#include "cli/bench/workers.h"

struct bench_limit {
    bool measured;
    double line; /* seconds until everybody has seen a cache line of everybody else */
    double copy; /* bytes that all ranks together copy per second, out of a neighbour's memory */
    double all_reduce; /* bytes of the vector per second, summed without a copy */
    size_t bytes;      /* of the vectors that are copied and summed */
    int devices;       /* 0: the host; else `copy` is of one device, and the sum is not measured */
    double launch;     /* seconds of an empty launch, between others or as calls are made */
};

/* By the ranks of "limit". 0, or -1 with sentences on stderr. */
int bench_limit_measure(struct bench_group *group, const struct bench_options *options,
                        struct bench_limit *ret_limit);
/* The least that a call on device memory takes. */
double bench_limit_seconds(const struct bench_limit *limit, const struct bench_call *call,
                           int ranks);

#endif
