/* SPDX-License-Identifier: BSD-3-Clause */
/* test_norm.c - norms of gradients that are whole or cut, of numbers large, small and none. */
#include "../world.h"

#include <rondo/train.h>

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100003 };

static struct world_report report;

static double norm_of(float *values, size_t count)
{
    rondo_span span = {values, count};
    double norm = -1;

    cr_assert_eq(rondo_norm(&span, 1, NULL, &norm), RONDO_OK);
    return norm;
}

Test(norm, of_three_and_four_is_five)
{
    float values[] = {3, 0, -4};

    cr_assert_eq(norm_of(values, 3), 5);
    cr_assert_eq(norm_of(values, 0), 0);
}

Test(norm, does_not_overflow_or_vanish)
{
    float large[] = {FLT_MAX, FLT_MAX, FLT_MAX, FLT_MAX};
    float small[] = {0x3p-149f, -0x4p-149f};

    cr_assert_eq(norm_of(large, 4), 2.0 * (double)FLT_MAX);
    cr_assert_eq(norm_of(small, 2), 0x5p-149);
}

Test(norm, small_elements_are_not_lost_beside_a_large_one)
{
    static float values[1 << 20];
    double sum = 0;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        values[i] = 0x1p-20f;
    values[12345] = 4096;
    sum = 4096.0 * 4096.0 + ((1 << 20) - 1) * 0x1p-40;
    cr_assert_eq(norm_of(values, 1 << 20), sqrt(sum));
}

Test(norm, with_a_nan_or_an_infinity_is_none)
{
    float values[] = {1, NAN, 2}, infinite[] = {1, INFINITY};

    cr_assert(isnan(norm_of(values, 3)));
    cr_assert(isnan(norm_of(infinite, 2)));
}

static float element(size_t i)
{
    return ldexpf((float)(world_hash(3, i) % 2000) - 1000, (int)(i % 40) - 20);
}

struct outcome {
    double limit;
    double norms[WORLD_RANKS];
    float values[COUNT];
};

/* Every rank takes a share of its own length, in two spans, and clips it. */
static rondo_result clip_share(rondo_comm *comm, void *argument, char *sentence)
{
    struct outcome *outcome = argument;
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    size_t first = COUNT / 7 * (size_t)rank;
    size_t last = rank == size - 1 ? COUNT : COUNT / 7 * (size_t)(rank + 1);
    rondo_span spans[2] = {{outcome->values + first, 5},
                           {outcome->values + first + 5, last - first - 5}};
    rondo_result result;

    for (size_t i = first; i < last; i++)
        outcome->values[i] = element(i);
    result = rondo_clip(spans, 2, outcome->limit, comm, &outcome->norms[rank]);
    return result ? world_say(sentence, result, "%s", rondo_ddp_last_error()) : RONDO_OK;
}

static struct outcome *clip_on(int size, double limit)
{
    struct outcome *outcome = world_share(sizeof(*outcome));

    outcome->limit = limit;
    cr_assert_eq(world_run_threads(size, clip_share, outcome, &report), 0, "%s", report.summary);
    for (int r = 1; r < size; r++)
        cr_assert_eq(outcome->norms[r], outcome->norms[0]);
    return outcome;
}

Test(clip, gives_the_same_bits_whatever_rank_holds_which_share)
{
    struct outcome *alone = clip_on(1, 10);
    double norm;

    cr_assert(alone->norms[0] > 1000);
    for (int size = 2; size <= 7; size++) {
        struct outcome *outcome = clip_on(size, 10);

        cr_assert_eq(outcome->norms[0], alone->norms[0]);
        cr_assert_arr_eq(outcome->values, alone->values, sizeof(outcome->values));
        world_unshare(outcome, sizeof(*outcome));
    }
    norm = norm_of(alone->values, COUNT);
    cr_assert(fabs(norm - 10) < 1e-5, "the norm is %g afterwards", norm);
    world_unshare(alone, sizeof(*alone));
}

Test(clip, leaves_short_gradients_alone)
{
    struct outcome *outcome = clip_on(3, 1e30);

    for (size_t i = 0; i < COUNT; i++)
        cr_assert_eq(outcome->values[i], element(i));
    world_unshare(outcome, sizeof(*outcome));
}

Test(clip, leaves_gradients_with_nan_alone)
{
    float values[] = {1e9f, NAN};
    rondo_span span = {values, 2};
    double norm;

    cr_assert_eq(rondo_clip(&span, 1, 1, NULL, &norm), RONDO_OK);
    cr_assert(isnan(norm));
    cr_assert_eq(values[0], 1e9f);
}

Test(clip, to_nothing_is_refused)
{
    double norm;

    cr_assert_eq(rondo_clip(NULL, 0, 0, NULL, &norm), RONDO_ERROR_INVALID);
}
