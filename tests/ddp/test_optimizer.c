/* SPDX-License-Identifier: BSD-3-Clause */
/* test_optimizer.c - AdamW and SGD against the formulas in double, in any cut; the schedule. */
#include <rondo/train.h>

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { COUNT = 133, STEPS = 5 };

static const rondo_adamw adamw = {
    .rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f, .decay = 0.1f};

static float gradient_of(size_t i, uint64_t step)
{
    return sinf((float)i * 1.7f + (float)step);
}

struct model {
    float values[COUNT], first[COUNT], second[COUNT];
};

static void train(struct model *model, size_t cut)
{
    for (size_t i = 0; i < COUNT; i++)
        model->values[i] = cosf((float)i);
    memset(model->first, 0, sizeof(model->first));
    memset(model->second, 0, sizeof(model->second));
    for (uint64_t step = 1; step <= STEPS; step++) {
        float gradients[COUNT];

        for (size_t i = 0; i < COUNT; i++)
            gradients[i] = gradient_of(i, step);
        for (size_t at = 0; at < COUNT; at += cut)
            rondo_adamw_step(&adamw, step, COUNT - at < cut ? COUNT - at : cut, model->values + at,
                             gradients + at, model->first + at, model->second + at);
    }
}

/* Computes the step as the paper does, with the moments corrected one by one. */
static double by_the_book(size_t i)
{
    double value = cosf((float)i), m = 0, v = 0;

    for (uint64_t step = 1; step <= STEPS; step++) {
        double g = gradient_of(i, step);

        m = 0.9 * m + 0.1 * g;
        v = 0.99 * v + 0.01 * g * g;
        value -= 0.01 * 0.1 * value;
        value -= 0.01 * (m / (1 - pow(0.9, (double)step))) /
                 (sqrt(v / (1 - pow(0.99, (double)step))) + 1e-8);
    }
    return value;
}

Test(optimizer, adamw_does_what_the_paper_says)
{
    static struct model model;

    train(&model, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert(fabs(model.values[i] - by_the_book(i)) < 1e-5, "element %zu is %g, not %g", i,
                  (double)model.values[i], by_the_book(i));
}

Test(optimizer, adamw_gives_the_same_bits_in_any_cut)
{
    static struct model whole, cut;

    train(&whole, COUNT);
    for (size_t piece = 1; piece < COUNT; piece += 6) {
        train(&cut, piece);
        cr_assert_arr_eq(&cut, &whole, sizeof(cut), "in pieces of %zu", piece);
    }
}

Test(optimizer, sgd_with_momentum_and_decay)
{
    rondo_sgd sgd = {.rate = 0.5f, .momentum = 0.5f, .decay = 0.25f};
    float value = 4, velocity = 0, gradient = 1;

    rondo_sgd_step(&sgd, 1, &value, &gradient, &velocity); /* change 1 + 1 */
    cr_assert_eq(value, 3.0f);
    rondo_sgd_step(&sgd, 1, &value, &gradient, &velocity); /* change 1 + 0.75 + half of 2 */
    cr_assert_eq(value, 3.0f - 0.5f * 2.75f);
    cr_assert_eq(velocity, 2.75f);
}

Test(optimizer, sgd_without_momentum_needs_no_velocity)
{
    rondo_sgd sgd = {.rate = 0.5f};
    float values[3] = {1, 2, 3}, gradients[3] = {2, 2, -2};

    rondo_sgd_step(&sgd, 3, values, gradients, NULL);
    cr_assert(values[0] == 0 && values[1] == 1 && values[2] == 4);
}

Test(schedule, warms_up_in_equal_steps_to_the_rate_of_all_ranks)
{
    rondo_schedule schedule = {.rate = 0.1, .ranks = 4, .start = 0.1, .warmup = 3, .steps = 13};

    cr_assert_float_eq(rondo_schedule_rate(&schedule, 0), 0.2, 1e-12);
    cr_assert_float_eq(rondo_schedule_rate(&schedule, 1), 0.3, 1e-12);
    cr_assert_float_eq(rondo_schedule_rate(&schedule, 2), 0.4, 1e-12);
    cr_assert_float_eq(rondo_schedule_rate(&schedule, 3), 0.4, 1e-12);
}

Test(schedule, half_a_cosine_leads_down_to_the_floor)
{
    rondo_schedule schedule = {.rate = 1, .floor = 0.2, .warmup = 10, .steps = 30};

    cr_assert_float_eq(rondo_schedule_rate(&schedule, 10), 1, 1e-12);
    cr_assert_float_eq(rondo_schedule_rate(&schedule, 20), 0.6, 1e-12);
    cr_assert_float_eq(rondo_schedule_rate(&schedule, 25), 0.2 + 0.4 * (1 - sqrt(0.5)), 1e-12);
    cr_assert_eq(rondo_schedule_rate(&schedule, 30), 0.2);
    cr_assert_eq(rondo_schedule_rate(&schedule, 1000), 0.2);
    for (uint64_t step = 10; step < 30; step++)
        cr_assert(rondo_schedule_rate(&schedule, step + 1) < rondo_schedule_rate(&schedule, step));
}

Test(schedule, without_an_end_the_rate_stays)
{
    rondo_schedule schedule = {.rate = 0.5, .warmup = 2};

    cr_assert_eq(rondo_schedule_rate(&schedule, 0), 0.25);
    cr_assert_eq(rondo_schedule_rate(&schedule, 1000000), 0.5);
}

Test(schedule, a_warm_up_as_long_as_the_training_ends_at_the_floor)
{
    rondo_schedule schedule = {.rate = 0.5, .warmup = 2, .steps = 2};

    cr_assert_eq(rondo_schedule_rate(&schedule, 1), 0.5);
    cr_assert_eq(rondo_schedule_rate(&schedule, 2), 0);
}
