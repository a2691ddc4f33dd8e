/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - who is faster, at one size and over all of them.
 *
 * A ratio is the time of another library over that of the first: above 1 the first is faster. The
 * machine's limit is no peer.
 */
#ifndef RONDO_CLI_BENCH_JUDGE_H
#define RONDO_CLI_BENCH_JUDGE_H

#include "cli/bench/sweep.h"

enum { BENCH_BEST_PEER = -1 }; /* in the place of a library: at each size the fastest peer */

/* A verdict sums up ratios. */
struct bench_verdict {
    int count;    /* of ratios; 0: the rest means nothing */
    int faster;   /* how many of them are above 1 */
    int left_out; /* sizes whose times are not steady: none of the above */
    double logarithms;
    double lowest;
    size_t lowest_bytes; /* the size with the lowest, and the library */
    int lowest_library;
};

double bench_algorithm_bandwidth(const struct bench_size *size, int library); /* bytes per second */
double bench_bus_bandwidth(const struct bench_sweep *sweep, const struct bench_size *size,
                           int library);
/* Wrong values of a library, at all sizes that are done. */
uint64_t bench_wrong_values(const struct bench_sweep *sweep, int library);
/* Not steady: the first library, or this one, at this size. */
bool bench_is_unsteady(const struct bench_size *size, int library);
/* A time counts of a library that is there, with results that were right. */
bool bench_counts(const struct bench_size *size, int library);
/* Time of `library` over that of the first; 0 where one of them has none that counts. */
double bench_ratio(const struct bench_size *size, int library);

bool bench_is_limit(const struct bench_sweep *sweep, int library);
int bench_peer_count(const struct bench_sweep *sweep);
/* The fastest peer at this size whose time counts, or -1. */
int bench_best_peer(const struct bench_sweep *sweep, const struct bench_size *size);
/* The ratio to a library or to BENCH_BEST_PEER; 0 where one of the two has none. */
double bench_ratio_to(const struct bench_sweep *sweep, const struct bench_size *size, int library);

/* One more ratio; 0 is none. */
void bench_verdict_add(struct bench_verdict *verdict, double ratio, size_t bytes, int library);
double bench_verdict_mean(const struct bench_verdict *verdict); /* geometric */
/* Over all sizes of a sweep. */
struct bench_verdict bench_judge(const struct bench_sweep *sweep, int library);

#endif
