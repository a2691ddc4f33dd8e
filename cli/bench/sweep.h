/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - measure all sizes on all libraries, in turns. */
#ifndef RONDO_CLI_BENCH_SWEEP_H
#define RONDO_CLI_BENCH_SWEEP_H

#include "cli/bench/limit.h"
#include "cli/bench/workers.h"

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

#endif
