/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model.c - the whole model in float64: its gradient, its hooks, what it begins with. */
#include "tests/train/slope.h"

#include "train/model/model.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

enum { LENGTH = 4, SEQUENCES = 2, PARAMETERS = 2 + 2 * 12 + 4 };

static const struct model_shape shape = {5, LENGTH, 8, 2, 2, SEQUENCES};
static const int tokens[SEQUENCES * LENGTH] = {0, 1, 2, 3, 4, 3, 2, 2};
static const int targets[SEQUENCES * LENGTH] = {LOSS_IGNORED, 2, 3, 4, LOSS_IGNORED, 2, 2, 1};
static const struct model_batch batch = {SEQUENCES, tokens, targets};

struct world {
    struct model *model;
    real *values, *gradients;
    real *noted;                  /* gradients when they were said to be ready */
    int order[PARAMETERS], ready; /* of gradients */
    int fail_at;                  /* which call of a hook */
    int open_units, calls;
};

static void world_open(struct world *world)
{
    size_t at = 0;

    *world = (struct world){.model = model_open(&shape, &arithmetic_host)};
    world->values = calloc(world->model->element_count, sizeof(real));
    world->gradients = calloc(world->model->element_count, sizeof(real));
    for (int i = 0; i < world->model->parameter_count; i++) {
        world->model->parameters[i].value = world->values + at;
        world->model->parameters[i].gradient = world->gradients + at;
        model_initialize(world->model, i, 7, world->values + at);
        at += world->model->parameters[i].count;
    }
}

static void world_close(struct world *world)
{
    free(world->values);
    free(world->gradients);
    model_close(world->model);
}

static real mean_loss(void *context)
{
    struct world *world = context;
    struct loss loss;

    model_forward(world->model, &batch, NULL);
    model_loss(world->model, &batch, 1, &loss);
    return (real)(loss.sum / (double)loss.counted);
}

Test(model, gradient_of_every_parameter_agrees_with_finite_differences)
{
    struct world world;
    struct slope slope = {mean_loss, &world};

    world_open(&world);
    /* Larger than at the start of a training, so that no part of the model is nearly linear. */
    for (size_t i = 0; i < world.model->element_count; i++)
        world.values[i] *= 3;
    mean_loss(&world);
    cr_assert(eq(int, model_backward(world.model, &batch, NULL), RONDO_OK));
    for (int i = 0; i < world.model->parameter_count; i++) {
        struct parameter *parameter = &world.model->parameters[i];

        cr_assert(lt(dbl,
                     slope_error(&slope, parameter->count, parameter->value, parameter->gradient),
                     10 * SLOPE_TOLERANCE),
                  "%s", parameter->name);
    }
    world_close(&world);
}

Test(model, a_second_backward_pass_adds_to_the_gradient)
{
    struct world world;
    real once;

    world_open(&world);
    mean_loss(&world);
    model_backward(world.model, &batch, NULL);
    once = world.gradients[100];
    mean_loss(&world);
    model_backward(world.model, &batch, NULL);
    cr_assert(ieee_ulp_eq(dbl, world.gradients[100], 2 * once, 4));
    cr_assert(ne(dbl, once, 0));
    world_close(&world);
}

Test(model, begins_with_a_loss_near_that_of_guessing)
{
    struct world world;

    world_open(&world);
    cr_assert(epsilon_eq(dbl, mean_loss(&world), log(shape.vocabulary), 0.05));
    world_close(&world);
}

Test(model, begins_with_values_that_follow_from_the_seed)
{
    struct world world;
    real same[5 * 8], other[5 * 8];

    world_open(&world);
    model_initialize(world.model, 0, 7, same);
    model_initialize(world.model, 0, 8, other);
    cr_assert(zero(int, memcmp(same, world.values, sizeof(same))));
    cr_assert(not(zero(int, memcmp(other, world.values, sizeof(other)))));
    world_close(&world);
}

static rondo_result next_call(struct world *world)
{
    return ++world->calls == world->fail_at ? RONDO_ERROR_PEER : RONDO_OK;
}

static rondo_result before(void *context, int unit, bool backward)
{
    struct world *world = context;

    world->open_units++;
    return next_call(world);
}

static rondo_result after(void *context, int unit, bool backward)
{
    struct world *world = context;

    world->open_units--;
    return next_call(world);
}

static rondo_result gradient_ready(void *context, int parameter)
{
    struct world *world = context;

    if (world->ready < PARAMETERS)
        world->order[world->ready] = parameter;
    world->ready++;
    return next_call(world);
}

Test(model, says_of_each_gradient_once_that_it_is_ready_the_last_layers_first)
{
    struct world world;
    const struct model_hooks hooks = {&world, before, after, gradient_ready};

    world_open(&world);
    cr_assert(eq(int, world.model->parameter_count, PARAMETERS));
    cr_assert(eq(int, model_forward(world.model, &batch, &hooks), RONDO_OK));
    cr_assert(eq(int, world.calls, 2 * world.model->unit_count));
    cr_assert(eq(int, model_backward(world.model, &batch, &hooks), RONDO_OK));
    cr_assert(eq(int, world.open_units, 0));
    cr_assert(eq(int, world.ready, PARAMETERS));
    for (int i = 1; i < PARAMETERS; i++)
        cr_assert(le(int, world.model->parameters[world.order[i]].unit,
                     world.model->parameters[world.order[i - 1]].unit));
    world_close(&world);
}

/* A gradient must be at the end what it is when it is said to be ready. */
static rondo_result note(void *context, int parameter)
{
    struct world *world = context;
    const struct parameter *at = &world->model->parameters[parameter];

    memcpy(world->noted + (at->gradient - world->gradients), at->gradient,
           at->count * sizeof(real));
    return RONDO_OK;
}

Test(model, does_not_touch_a_gradient_after_it_was_said_to_be_ready)
{
    struct world world;
    const struct model_hooks hooks = {&world, NULL, NULL, note};

    world_open(&world);
    world.noted = calloc(world.model->element_count, sizeof(real));
    mean_loss(&world);
    cr_assert(eq(int, model_backward(world.model, &batch, &hooks), RONDO_OK));
    cr_assert(
        zero(int, memcmp(world.noted, world.gradients, world.model->element_count * sizeof(real))));
    free(world.noted);
    world_close(&world);
}

Test(model, ends_a_pass_when_a_hook_fails)
{
    struct world world;
    const struct model_hooks hooks = {&world, before, after, gradient_ready};

    world_open(&world);
    for (int i = 1; i <= 2 * world.model->unit_count; i++) {
        world.calls = 0;
        world.fail_at = i;
        cr_assert(eq(int, model_forward(world.model, &batch, &hooks), RONDO_ERROR_PEER));
        cr_assert(eq(int, world.calls, i));
    }
    for (int i = 1; i <= 2 * world.model->unit_count + PARAMETERS; i++) {
        world.calls = 0;
        world.fail_at = i;
        cr_assert(eq(int, model_backward(world.model, &batch, &hooks), RONDO_ERROR_PEER));
        cr_assert(eq(int, world.calls, i));
    }
    world_close(&world);
}
