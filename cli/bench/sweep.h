/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h - measure all sizes on all libraries, in turns. */
#ifndef RONDO_CLI_BENCH_SWEEP_H
#define RONDO_CLI_BENCH_SWEEP_H

#include "cli/bench/noise.h"
#include "cli/bench/workers.h"

#include <stdio.h>

/*
 * The figures of the machine that --limit stands on. On the host a worker does each call as well as
 * it can be done (bench/library_limit.c). For device memory the limit is computed: the least bytes
 * that the memory of the busiest device has to move, at the speed of a copy, but no less than a
 * launch.
 */
struct bench_limit {
    bool measured;
    double line; /* host: seconds until everybody has seen a cache line of everybody else */
    double copy; /* bytes that all ranks together copy per second, out of a neighbour's memory */
    double all_reduce; /* host: bytes of the vector per second, summed without a copy */
    size_t bytes;      /* of the vectors that are copied and summed */
    int devices;       /* 0: the host; else `copy` is of one device, and the sum is not measured */
    double launch;     /* seconds of an empty launch, between others or as calls are made */
};

/* One library's result at one size. Seconds are those of the slowest rank. */
struct bench_result {
    bool available; /* else the rest means nothing */
    bool checked;   /* else the right result is not exact, and `wrong` means nothing */
    uint64_t wrong;
    double predicted;              /* seconds, by the cost model; negative: nobody knows */
    char ran[BENCH_ALGORITHM_MAX]; /* the algorithm of the last call; "": nobody knows */
    double median, min;
    struct noise noise; /* how steady it was */
    /* With --overlap: seconds of the calls alone, and of computing alone; and the part of the calls
     * that computing hid, medians of rounds. Negative: not measured. */
    double pure, work, overlap;
    double rank_bytes, communicator_bytes; /* memory, mean of ranks; negative: not measured */
};

struct bench_size {
    size_t count, bytes; /* bytes of the full vector: count times what it takes */
    struct bench_result results[BENCH_LIBRARIES];
};

struct bench_sweep {
    const struct bench_options *options;
    struct bench_group *groups; /* one per library, in their order */
    struct bench_size *sizes;
    int size_count; /* done so far: all, unless it failed */
    uint64_t wrong; /* over all */
    bool complete;  /* all sizes are done */
    /* Called after each round of a size, which is at size_count; NULL: nobody looks. */
    void (*watch)(const struct bench_sweep *sweep);
    struct bench_limit limit; /* measured if "limit" is among the libraries */
};

/* One command has measured these so far; the last one may go on. */
struct bench_sweeps {
    struct bench_sweep *list;
    int count, expected;
    FILE *csv;     /* open from the first size on */
    int csv_sizes; /* of all sweeps, whose rows are in it */
    int csv_error; /* errno of what could not be written; 0: nothing */
};

/*
 * Calls `each` (table.c prints a line) when a size is done. 0, or -1 with sentences on stderr. Owns
 * sweep->sizes.
 */
int bench_sweep_run(struct bench_sweep *sweep, void (*each)(const struct bench_sweep *sweep));
void bench_sweep_done(struct bench_sweep *sweep);

/* ---- limit.c --------------------------------------------------------------------------------- */

/* By the ranks of "limit". 0, or -1 with sentences on stderr. */
int bench_limit_measure(struct bench_group *group, const struct bench_options *options,
                        struct bench_limit *ret_limit);
/* The least that a call on device memory takes. */
double bench_limit_seconds(const struct bench_limit *limit, const struct bench_call *call,
                           int ranks);

#endif
