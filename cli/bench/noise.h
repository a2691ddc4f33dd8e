/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noise.h - how far the figures of a row can be trusted.
 *
 * A round is what a library measures in one turn; rounds of all libraries are interleaved, so a
 * ratio of two rounds with the same number is one of the same moment.
 */
#ifndef RONDO_CLI_BENCH_NOISE_H
#define RONDO_CLI_BENCH_NOISE_H

#include <stdbool.h>

enum { NOISE_ROUNDS_MAX = 64 }; /* kept of a row; later rounds count in its median only */

struct noise {
    double p90, p95, p99, max;        /* seconds, of all batches */
    double rank_spread;               /* slowest rank over fastest rank, mean of batches; 0: none */
    double rounds[NOISE_ROUNDS_MAX];  /* median of each round, seconds */
    double fastest[NOISE_ROUNDS_MAX]; /* fastest batch of each, seconds */
    int round_count;
    double spread; /* of rounds: (third quartile - first quartile) / median */
    bool unsteady; /* the median says little */
};

/* Middle of an array, which gets sorted. */
double bench_median(double *values, int count);
/* The value below which a share of sorted values lies (nearest rank). */
double noise_quantile(const double *sorted, int count, double share);

/* Notes the round whose batches these are; sorts them. */
void noise_add_round(struct noise *noise, double *batches, int count);
/* All batches of the row, sorted. */
void noise_conclude(struct noise *noise, const double *sorted, int count);

/* An interval that has the true median with a confidence: 0.95, or what few values allow. */
struct noise_interval {
    double low, high; /* 0: there is none */
    double confidence;
};

/*
 * The interval of a median by order statistics (the sign test's): of n sorted values, those with
 * the numbers k and n + 1 - k enclose the median with the probability 1 - 2 P(B < k), B binomial
 * (n, 1/2).
 * k is the largest one that gives 0.95. It wants nothing of the distribution. Sorts the values.
 */
struct noise_interval noise_median_interval(double *values, int count);
/* That of the ratio theirs / ours, out of the ratios of rounds with the same number. */
struct noise_interval noise_ratio_interval(const struct noise *ours, const struct noise *theirs);

#endif
