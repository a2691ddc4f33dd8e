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

struct bench_verdict {
    int sizes;     /* that both have; 0: the rest means nothing */
    int faster;    /* at how many the first is faster */
    double mean;   /* of the ratios, geometric */
    double lowest; /* of the ratios */
    const struct bench_size *lowest_size;
    int lowest_library;
};

bool bench_is_limit(const struct bench_sweep *sweep, int library);
int bench_peer_count(const struct bench_sweep *sweep);
/* The fastest peer at this size, or -1 if none is available. */
int bench_best_peer(const struct bench_sweep *sweep, const struct bench_size *size);
/* The ratio to a library or to BENCH_BEST_PEER; 0 where one of the two is not available. */
double bench_ratio_to(const struct bench_sweep *sweep, const struct bench_size *size, int library);
struct bench_verdict bench_judge(const struct bench_sweep *sweep, int library);

#endif
