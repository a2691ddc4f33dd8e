/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost_many.c - the count of very many ranks, from counts of fewer.
 *
 * A rank's plan may have a step for each other rank, so the plans of 100 000 ranks take long to
 * write only to be counted. But every number in a count grows in a simple way when ranks double in
 * number: by the same amount (log n), by twice the last amount (n), by half of it (1/n), or not. Or
 * by a little more than twice that (n log n): then what a number has beyond twice the one before
 * doubles, too. So three counts, each of twice as many ranks as the one before, tell how it goes
 * on:
 *
 *     ranks      b     2b    4b    8b     16b
 *     number     5      7     9    11      13        differences 2, 2: their ratio is 1
 *     number    10     18    34    66     130        differences 8, 16: their ratio is 2
 *
 * Ranks beyond a power of two make some algorithms dearer, so b is a power of two only if the
 * number of ranks is one. Of groups there are fewer, and each is as large as before.
 */
#include "collectives/select/cost.h"

#include "base/fail.h"
#include "collectives/levels/grouping.h"

#include <stdlib.h>

enum { SAMPLES = 3, MANY_RANKS = 512, MANY_GROUPS = 64, FEW_RANKS = 32, FEW_GROUPS = 9 };

/* The next term and those after it: `doublings` of them. */
static double go_on(const double samples[SAMPLES], int doublings)
{
    double before = samples[1] - samples[0], last = samples[2] - samples[1];
    double ratio = before != 0 ? last / before : 0, number = samples[2];
    double beyond = number - 2 * samples[1];

    for (int i = 0; i < doublings && ratio > 2; i++) {
        beyond *= 2;
        number = 2 * number + beyond;
    }
    for (int i = 0; i < doublings && ratio > 0 && ratio <= 2; i++) {
        last *= ratio;
        number += last;
    }
    return number;
}

void cost_go_on(const struct count samples[3], int doublings, struct count *ret_count)
{
    struct count count = samples[2], terms[SAMPLES] = {samples[0], samples[1], samples[2]};
    double *numbers[COUNT_NUMBERS], *of_samples[SAMPLES][COUNT_NUMBERS];

    count_numbers(&count, numbers);
    for (int s = 0; s < SAMPLES; s++)
        count_numbers(&terms[s], of_samples[s]);
    for (int i = 0; i < COUNT_NUMBERS; i++)
        *numbers[i] =
            go_on((double[]){*of_samples[0][i], *of_samples[1][i], *of_samples[2][i]}, doublings);
    *ret_count = count;
}

/* The first sample: at least `few`, and a power of two as `many` is; how often it doubles. */
static int find_base(int many, int few, int *ret_doublings)
{
    int base = many, doublings = 0;

    while (base / 2 >= few) {
        base /= 2;
        doublings++;
    }
    if ((many & (many - 1)) && !(base & (base - 1)))
        base++;
    *ret_doublings = doublings - (SAMPLES - 1);
    return base;
}

/* Makes `count` groups like these: the largest and the smallest one are among them. */
static rondo_result make_fewer(const struct grouping *groups, int count,
                               struct grouping **ret_groups)
{
    int *names = calloc((size_t)groups->size, sizeof(*names));
    int smallest = 0, largest = 0, size = 0;
    rondo_result result;

    if (!names)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d groups of ranks.", count);
    for (int g = 1; g < groups->groups; g++) {
        if (grouping_members(groups, g) < grouping_members(groups, smallest))
            smallest = g;
        if (grouping_members(groups, g) > grouping_members(groups, largest))
            largest = g;
    }
    for (int i = 0; i < count; i++) {
        int group = i == 2 ? smallest : i == 3 ? largest : i;

        for (int k = 0; k < grouping_members(groups, group) && size < groups->size; k++)
            names[size++] = i;
    }
    result = grouping_make(size, names, ret_groups);
    free(names);
    return result;
}

static rondo_result count_sample(const struct cost_subject *subject, int many,
                                 struct count *ret_count)
{
    struct cost_subject fewer = *subject;
    struct grouping *groups = NULL;
    rondo_result result = RONDO_OK;

    fewer.size = many;
    if (subject->groups) {
        result = make_fewer(subject->groups, many, &groups);
        if (result)
            return result;
        fewer.groups = groups;
        fewer.size = groups->size;
    }
    result = cost_count_plans(&fewer, ret_count);
    grouping_close(groups);
    return result;
}

rondo_result cost_count_many(const struct cost_subject *subject, struct count *ret_count)
{
    int many = subject->groups ? subject->groups->groups : subject->size;
    struct count samples[SAMPLES];
    int doublings, base;
    rondo_result result = RONDO_OK;

    if (subject->algorithm->given || many <= (subject->groups ? MANY_GROUPS : MANY_RANKS))
        return cost_count_plans(subject, ret_count);
    base = find_base(many, subject->groups ? FEW_GROUPS : FEW_RANKS, &doublings);
    for (int s = 0; s < SAMPLES && !result; s++)
        result = count_sample(subject, base << s, &samples[s]);
    if (!result)
        cost_go_on(samples, doublings, ret_count);
    return result;
}
