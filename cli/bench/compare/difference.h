/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * difference.h - are two samples of times different, and by how much?
 *
 * Ranks of differences decide, so nothing is wanted of the distribution: times have a long tail to
 * one side. Samples of separate runs are compared by all pairs of an old and a new value (the test
 * of Wilcoxon, Mann and Whitney); rounds that took turns by the means of all pairs of differences
 * (Wilcoxon's signed ranks). Either way the ratio is the median of those, as Hodges and Lehmann
 * estimate, and the probabilities are exact.
 */
#ifndef RONDO_CLI_BENCH_COMPARE_DIFFERENCE_H
#define RONDO_CLI_BENCH_COMPARE_DIFFERENCE_H

#include <stdbool.h>

/* The probability that anything at all is taken for different between equals. A gate that is asked
 * for every change has to be wrong more rarely than once in twenty. */
#define DIFFERENCE_SIGNIFICANT 0.01

struct difference {
    double ratio;     /* old / new: above 1 the new one is faster */
    double low, high; /* an interval that has the true ratio with this confidence */
    double confidence;
    double p; /* probability of such a difference, or a larger one, between equals */
};

/* These take 1 to NOISE_ROUNDS_MAX values each. */
struct difference difference_of_samples(const double *old, int old_count, const double *new,
                                        int new_count);
/* old[i] and new[i] are of the same moment. */
struct difference difference_of_pairs(const double *old, const double *new, int count);

/* The least p that so many values can give: more cells than 0.01 / p cannot be judged. */
double difference_least_p(int old_count, int new_count, bool paired);

/*
 * By how much runs of one build differ from each other, as the logarithm of a ratio, out of the
 * logarithms of all cells: most of them did not change. It is the standard deviation of
 * those that are not far from their median; 0: too few cells tell.
 */
double difference_between_runs(const double *logarithms, int count);
/* Probability of a logarithm as large as this one if runs differ so. */
double difference_beyond_runs(double logarithm, double between_runs, int count);

/*
 * Holm's correction for many cells: with those below 0.01 taken for different, the probability
 * that any of them is not is at most 0.01.
 */
void difference_correct(double *p, int count);

#endif
