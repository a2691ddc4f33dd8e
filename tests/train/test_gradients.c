/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gradients.c - every layer's backward function against finite differences, in float64.
 *
 * The loss of a layer is a random weighted sum of its output, so its output's gradient is the
 * weights.
 */
#include "tests/train/slope.h"

#include "train/model/layers.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

enum { ROWS = 6, LENGTH = 3, IN = 5, OUT = 4, MOST = 256 };

/* One layer with its input, output, and the weights of the sum. */
struct world {
    void (*forward)(struct world *world);
    size_t outputs;
    struct parameter first, second; /* as weight and bias */
    real values[2][MOST], gradients[2][MOST];
    real x[MOST], y[MOST], dy[MOST], dx[MOST], saved[MOST];
    int tokens[ROWS];
};

static real weighted_sum(void *context)
{
    struct world *world = context;
    real sum = 0;

    world->forward(world);
    for (size_t i = 0; i < world->outputs; i++)
        sum += world->dy[i] * world->y[i];
    return sum;
}

static void begin(struct world *world, void (*forward)(struct world *), size_t outputs)
{
    memset(world, 0, sizeof(*world));
    world->forward = forward;
    world->outputs = outputs;
    world->first.value = world->values[0];
    world->second.value = world->values[1];
    world->first.gradient = world->gradients[0];
    world->second.gradient = world->gradients[1];
    slope_fill(2 * (size_t)MOST, world->values[0], 1);
    slope_fill(MOST, world->x, 2);
    slope_fill(MOST, world->dy, 3);
    forward(world);
}

static double error_of(struct world *world, size_t count, real *values, const real *gradient)
{
    const struct slope slope = {weighted_sum, world};

    return slope_error(&slope, count, values, gradient);
}

#define SHOULD_BE_RIGHT(count, values, gradient) \
    cr_assert(lt(dbl, error_of(&world, count, values, gradient), SLOPE_TOLERANCE))

static struct linear linear_of(struct world *world)
{
    return (struct linear){IN, OUT, &world->first, &world->second};
}

static void run_linear(struct world *world)
{
    struct linear layer = linear_of(world);

    linear_forward(&layer, ROWS, world->x, world->saved, world->y);
}

Test(gradients, of_a_linear_layer_with_a_residual)
{
    struct world world;
    struct linear layer = linear_of(&world);

    begin(&world, run_linear, ROWS * OUT);
    linear_backward(&layer, ROWS, world.x, world.dy, world.dx);
    SHOULD_BE_RIGHT(IN * OUT, world.values[0], world.gradients[0]);
    SHOULD_BE_RIGHT(OUT, world.values[1], world.gradients[1]);
    SHOULD_BE_RIGHT(ROWS * IN, world.x, world.dx);
    SHOULD_BE_RIGHT(ROWS * OUT, world.saved, world.dy);
}

static void run_norm(struct world *world)
{
    struct norm layer = {IN, &world->first, &world->second};

    norm_forward(&layer, ROWS, world->x, world->y, world->saved);
}

Test(gradients, of_a_layer_norm)
{
    struct world world;
    struct norm layer = {IN, &world.first, &world.second};
    struct norm_saved saved = {world.x, world.saved};

    begin(&world, run_norm, ROWS * IN);
    norm_backward(&layer, ROWS, saved, world.dy, world.dx);
    SHOULD_BE_RIGHT(IN, world.values[0], world.gradients[0]);
    SHOULD_BE_RIGHT(IN, world.values[1], world.gradients[1]);
    SHOULD_BE_RIGHT(ROWS * IN, world.x, world.dx);
}

static void run_gelu(struct world *world)
{
    gelu_forward(ROWS * IN, world->x, world->y);
}

Test(gradients, of_a_gelu)
{
    struct world world;

    begin(&world, run_gelu, ROWS * IN);
    gelu_backward(ROWS * IN, world.x, world.dy, world.dx);
    SHOULD_BE_RIGHT(ROWS * IN, world.x, world.dx);
}

/* Two heads of width 2 over two sequences. */
static const struct attention attention = {4, 2, LENGTH};

static void run_attention(struct world *world)
{
    attention_forward(&attention, ROWS / LENGTH, world->x, world->saved, world->y);
}

Test(gradients, of_attention)
{
    struct world world;
    real scratch[LENGTH * LENGTH];
    struct attention_saved saved = {world.x, world.saved, scratch};

    begin(&world, run_attention, ROWS * 4);
    attention_backward(&attention, ROWS / LENGTH, saved, world.dy, world.dx);
    SHOULD_BE_RIGHT(ROWS * 3 * 4, world.x, world.dx);
}

Test(gradients, of_attention_do_not_look_into_the_future)
{
    struct world world;
    real before[4];

    begin(&world, run_attention, ROWS * 4);
    memcpy(before, world.y, sizeof(before));
    for (int i = 3 * 4; i < LENGTH * 3 * 4; i++)
        world.x[i] += 1;
    run_attention(&world);
    cr_assert(zero(int, memcmp(before, world.y, sizeof(before))));
    cr_assert(ne(dbl, world.y[4], world.y[8]));
}

static void run_embedding(struct world *world)
{
    struct embedding layer = {IN, LENGTH, &world->first, &world->second};

    embedding_forward(&layer, ROWS, world->tokens, world->y);
}

Test(gradients, of_an_embedding)
{
    struct world world;
    struct embedding layer = {IN, LENGTH, &world.first, &world.second};
    const int tokens[ROWS] = {0, 2, 2, 1, 0, 2};

    begin(&world, run_embedding, ROWS * IN);
    memcpy(world.tokens, tokens, sizeof(tokens));
    embedding_backward(&layer, ROWS, tokens, world.dy);
    SHOULD_BE_RIGHT(3 * IN, world.values[0], world.gradients[0]);
    SHOULD_BE_RIGHT(LENGTH * IN, world.values[1], world.gradients[1]);
}

static const int targets[ROWS] = {1, LOSS_IGNORED, 0, 3, 2, LOSS_IGNORED};

static real run_loss(void *context)
{
    struct world *world = context;
    struct loss loss;

    memcpy(world->y, world->x, sizeof(world->y));
    loss_of(OUT, LENGTH, ROWS, targets, (real)0.25, world->y, &loss);
    return (real)(loss.sum * 0.25);
}

Test(gradients, of_the_loss_of_those_tokens_that_count)
{
    struct world world;
    const struct slope slope = {run_loss, &world};
    real gradient[ROWS * OUT];

    slope_fill(MOST, world.x, 2);
    run_loss(&world);
    memcpy(gradient, world.y, sizeof(gradient));
    cr_assert(lt(dbl, slope_error(&slope, ROWS * OUT, world.x, gradient), SLOPE_TOLERANCE));
    for (int i = 0; i < OUT; i++)
        cr_assert(zero(dbl, gradient[OUT + i]));
}

Test(gradients, that_are_a_little_wrong_are_noticed)
{
    struct world world;
    struct linear layer = linear_of(&world);

    begin(&world, run_linear, ROWS * OUT);
    linear_backward(&layer, ROWS, world.x, world.dy, world.dx);
    world.dx[7] *= (real)1.001;
    cr_assert(gt(dbl, error_of(&world, ROWS * IN, world.x, world.dx), SLOPE_TOLERANCE * 10));
}
