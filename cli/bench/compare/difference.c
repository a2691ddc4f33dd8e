/* SPDX-License-Identifier: BSD-3-Clause */
/* difference.c - are two samples of times different, and by how much? */
#include "cli/bench/compare/difference.h"

#include "cli/bench/noise.h"
#include "cli/bench/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95
#define FAR        5.2 /* median distances: 3.5 standard deviations of a normal distribution */

enum {
    DIFFERENCES_MAX = NOISE_ROUNDS_MAX * NOISE_ROUNDS_MAX,
    CELLS_LEAST = 8 /* that tell what runs differ by */
};

/*
 * Equals can fall in many ways; how many of them have so many differences below 0? `ways`
 * starts as the polynomial 1; its coefficient i is the number of ways with i of them.
 */
struct ways {
    double of[DIFFERENCES_MAX + 1];
    double all;
    int most; /* differences */
};

/* Times 1 - x^by, then divided by 1 - x^upon: all that a Gaussian binomial coefficient needs. */
static void multiply(struct ways *ways, int by, int upon)
{
    for (int i = ways->most; i >= by; i--)
        ways->of[i] -= ways->of[i - by];
    for (int i = upon; i <= ways->most; i++)
        ways->of[i] += ways->of[i - upon];
}

static void count_samples(struct ways *ways, int old_count, int new_count)
{
    memset(ways, 0, sizeof(*ways));
    ways->most = old_count * new_count;
    ways->of[0] = ways->all = 1;
    for (int i = 1; i <= old_count; i++) {
        multiply(ways, new_count + i, i);
        ways->all *= (double)(new_count + i) / i;
    }
}

/* Each pair falls to one of two sides: rank i counts, or it does not. */
static void count_pairs(struct ways *ways, int count)
{
    memset(ways, 0, sizeof(*ways));
    ways->most = count * (count + 1) / 2;
    ways->of[0] = ways->all = 1;
    for (int rank = 1; rank <= count; rank++) {
        for (int i = ways->most; i >= rank; i--)
            ways->of[i] += ways->of[i - rank];
        ways->all *= 2;
    }
}

/* The probability of at most `count` differences on one given side, twice. */
static double both_tails(const struct ways *ways, int count)
{
    double sum = 0;

    for (int i = 0; i <= count && i <= ways->most; i++)
        sum += ways->of[i];
    return fmin(1, 2 * sum / ways->all);
}

/* Out of logarithms of ratios, which get sorted. */
static struct difference conclude(double *differences, const struct ways *ways)
{
    int count = ways->most;
    double median = bench_median(differences, count);
    int below = 0, above = 0, cut = 0;
    struct difference found;

    for (int i = 0; i < count; i++) {
        below += differences[i] < 0;
        above += differences[i] > 0;
    }
    while (2 * (cut + 1) < count && both_tails(ways, cut + 1) <= 1 - CONFIDENCE)
        cut++;
    found.ratio = exp(median);
    found.low = exp(differences[cut]);
    found.high = exp(differences[count - 1 - cut]);
    found.confidence = 1 - both_tails(ways, cut);
    /* What is equal speaks for neither side. */
    found.p = both_tails(ways, count - (below > above ? below : above));
    return found;
}

struct difference difference_of_samples(const double *old, int old_count, const double *new,
                                        int new_count)
{
    static double differences[DIFFERENCES_MAX];
    static struct ways ways;

    count_samples(&ways, old_count, new_count);
    for (int i = 0; i < old_count; i++)
        for (int j = 0; j < new_count; j++)
            differences[i * new_count + j] = log(old[i] / new[j]);
    return conclude(differences, &ways);
}

struct difference difference_of_pairs(const double *old, const double *new, int count)
{
    static double differences[DIFFERENCES_MAX];
    static struct ways ways;
    int found = 0;

    count_pairs(&ways, count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++)
            differences[found++] = (log(old[i] / new[i]) + log(old[j] / new[j])) / 2;
    return conclude(differences, &ways);
}

double difference_least_p(int old_count, int new_count, bool paired)
{
    static struct ways ways;

    if (paired)
        count_pairs(&ways, old_count < new_count ? old_count : new_count);
    else
        count_samples(&ways, old_count, new_count);
    return both_tails(&ways, 0);
}

/* ---- Many cells ------------------------------------------------------------------------------ */

/* Standard deviation of those that are not far from the middle. */
static double deviation_within(const double *values, int count, double middle, double far)
{
    double sum = 0, squares = 0;
    int within = 0;

    for (int i = 0; i < count; i++)
        if (fabs(values[i] - middle) <= far) {
            sum += values[i] - middle;
            squares += (values[i] - middle) * (values[i] - middle);
            within++;
        }
    return within > 1 ? sqrt(fmax(0, squares - sum * sum / within) / (within - 1)) : 0;
}

double difference_between_runs(const double *logarithms, int count)
{
    double *values = count < CELLS_LEAST ? NULL : malloc((size_t)count * sizeof(*values));
    double middle, distance;

    if (!values)
        return 0;
    memcpy(values, logarithms, (size_t)count * sizeof(*values));
    middle = bench_median(values, count);
    for (int i = 0; i < count; i++)
        values[i] = fabs(values[i] - middle);
    distance = bench_median(values, count);
    free(values);
    return deviation_within(logarithms, count, middle, FAR * distance);
}

/* Student's density, but for a factor. */
static double density(double t, double freedom)
{
    return pow(1 + t * t / freedom, -(freedom + 1) / 2);
}

/* Both tails beyond t, by Simpson's rule over x = t / (1 + t), which ends at 1. */
static double student_tails(double t, double freedom)
{
    enum { STEPS = 2000 };
    double inside = 0, all = 0;

    for (int part = 0; part < 2; part++) {
        double from = part ? t / (1 + t) : 0;
        double width = ((part ? 1 : t / (1 + t)) - from) / STEPS;
        double sum = 0;

        for (int i = 0; i <= STEPS; i++) {
            double x = from + i * width;
            double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;

            if (x < 1)
                sum += weight * density(x / (1 - x), freedom) / (1 - x) / (1 - x);
        }
        all += sum * width / 3;
        inside += part ? 0 : sum * width / 3;
    }
    return (all - inside) / all;
}

/* Cells that changed were left out of the deviation: not all of them count. */
double difference_beyond_runs(double logarithm, double between_runs, int count)
{
    if (between_runs <= 0)
        return 0;
    return student_tails(fabs(logarithm) / between_runs, fmax(2, 0.8 * (count - 1)));
}

struct ranked {
    double p;
    int cell;
};

static int by_p(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->p, y = ((const struct ranked *)b)->p;

    return (x > y) - (x < y);
}

void difference_correct(double *p, int count)
{
    struct ranked *ranked = calloc((size_t)count + 1, sizeof(*ranked));
    double largest = 0;

    for (int i = 0; ranked && i < count; i++)
        ranked[i] = (struct ranked){p[i], i};
    if (ranked)
        qsort(ranked, (size_t)count, sizeof(*ranked), by_p);
    for (int i = 0; i < count; i++) {
        /* Without memory the simpler correction, which is never smaller. */
        double corrected = ranked ? ranked[i].p * (count - i) : p[i] * count;

        largest = ranked ? fmax(largest, fmin(1, corrected)) : fmin(1, corrected);
        p[ranked ? ranked[i].cell : i] = largest;
    }
    free(ranked);
}
