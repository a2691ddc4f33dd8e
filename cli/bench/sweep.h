/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - measure all sizes on all libraries, in turns. */
#ifndef RONDO_CLI_BENCH_SWEEP_H
#define RONDO_CLI_BENCH_SWEEP_H

#include "cli/bench/workers.h"

/*
 * The figures of the machine that --limit stands on. On the host a worker does each call as well as
 * it can be done (bench/library_limit.c). For device memory the limit is computed: the least bytes
 * that the memory of the busiest device has to move, at the speed of a copy, but no less than a
 * launch.
 */
struct bench_limit {
    bool measured;
    double line; /* seconds until everybody has seen a cache line of everybody else */
    double copy; /* bytes that all ranks together copy per second, out of a neighbour's memory */
    double all_reduce; /* bytes of the vector per second, summed without a copy */
    size_t bytes;      /* of the vectors that are copied and summed */
    int devices;       /* 0: the host; else `copy` is of one device, and the sum is not measured */
    double launch;     /* seconds of an empty launch, between others or as calls are made */
};

/* What one library did at one size. Seconds are those of the slowest rank. */
struct bench_result {
    bool available; /* else the rest means nothing */
    bool checked;   /* else the right result is not exact, and `wrong` means nothing */
    uint64_t wrong;
    double median, min;
};

struct bench_size {
    size_t count, bytes; /* bytes of the full vector: count times what it takes */
    struct bench_result results[BENCH_LIBRARIES_MAX];
};

struct bench_sweep {
    const struct bench_options *options;
    struct bench_group *groups; /* one per library, in their order */
    struct bench_size *sizes;
    int size_count;           /* done so far: all, unless it failed */
    uint64_t wrong;           /* over all */
    struct bench_limit limit; /* measured if "limit" is among the libraries */
};

/*
 * Calls `each` (table.c prints a line) when a size is done. 0, or -1 with sentences on stderr. Owns
 * sweep->sizes.
 */
int bench_sweep_run(struct bench_sweep *sweep, void (*each)(const struct bench_sweep *sweep));
void bench_sweep_done(struct bench_sweep *sweep);

double bench_algorithm_bandwidth(const struct bench_size *size, int library); /* bytes per second */
double bench_bus_bandwidth(const struct bench_sweep *sweep, const struct bench_size *size,
                           int library);
/* Time of `library` over that of the first; 0 where one of them is not available. */
double bench_ratio(const struct bench_size *size, int library);
/* Middle of an array, which gets sorted. */
double bench_median(double *values, int count);

/* ---- limit.c --------------------------------------------------------------------------------- */

/* By the ranks of "limit". 0, or -1 with sentences on stderr. */
int bench_limit_measure(struct bench_group *group, const struct bench_options *options,
                        struct bench_limit *ret_limit);
/* The least that a call on device memory takes. */
double bench_limit_seconds(const struct bench_limit *limit, const struct bench_call *call,
                           int ranks);

#endif
