/* SPDX-License-Identifier: BSD-3-Clause */
/* noise.c - how far the figures of a row can be trusted. */
#include "cli/bench/noise.h"

#include <math.h>
#include <stdlib.h>

#define CONFIDENCE    0.95
#define STEADY_SPREAD 0.5 /* quartiles of rounds may be so far apart, in medians */
#define STEADY_ABOVE  8   /* and the median so many times the minimum */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double noise_quantile(const double *sorted, int count, double share)
{
    int index = (int)ceil(share * count) - 1;

    return count ? sorted[index < 0 ? 0 : index] : 0;
}

void noise_add_round(struct noise *noise, double *batches, int count)
{
    if (count == 0 || noise->round_count == NOISE_ROUNDS_MAX)
        return;
    noise->rounds[noise->round_count] = bench_median(batches, count); /* sorts */
    noise->fastest[noise->round_count++] = batches[0];
}

void noise_conclude(struct noise *noise, const double *sorted, int count)
{
    double rounds[NOISE_ROUNDS_MAX];
    int n = noise->round_count;
    double median;

    if (count == 0 || n == 0)
        return;
    for (int i = 0; i < n; i++)
        rounds[i] = noise->rounds[i];
    median = bench_median(rounds, n);
    noise->p90 = noise_quantile(sorted, count, 0.90);
    noise->p95 = noise_quantile(sorted, count, 0.95);
    noise->p99 = noise_quantile(sorted, count, 0.99);
    noise->max = sorted[count - 1];
    noise->spread = (rounds[n - 1 - n / 4] - rounds[n / 4]) / median;
    noise->unsteady = noise->spread > STEADY_SPREAD || median > STEADY_ABOVE * sorted[0];
}

struct noise_interval noise_median_interval(double *values, int count)
{
    double outside = count ? 2 * pow(0.5, count) : 1; /* 2 P(B < k) */
    double term = outside;
    int k = 1;

    if (count == 0)
        return (struct noise_interval){0};
    bench_median(values, count); /* sorts */
    for (; 2 * (k + 1) <= count; k++) {
        double next = term * (count - k + 1) / k; /* P(B = k) out of P(B = k - 1), twice */

        if (outside + next > 1 - CONFIDENCE)
            break;
        outside += next;
        term = next;
    }
    return (struct noise_interval){values[k - 1], values[count - k], 1 - outside};
}

struct noise_interval noise_ratio_interval(const struct noise *ours, const struct noise *theirs)
{
    int count = ours->round_count < theirs->round_count ? ours->round_count : theirs->round_count;
    double ratios[NOISE_ROUNDS_MAX];

    for (int i = 0; i < count; i++)
        ratios[i] = theirs->rounds[i] / ours->rounds[i];
    return noise_median_interval(ratios, count);
}
