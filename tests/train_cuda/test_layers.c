/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_layers.c - every layer of the device beside that of the host, forward and backward, with
 * rows shorter and longer than a block has channels, and more rows than parts of sums.
 */
#include "tests/train_cuda/twins.h"

#include "train/common/say.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

enum { ROWS = 200, NARROW = 24, WIDE = 300 };

static const double tolerance = 1e-5;

static void begin(void)
{
    cr_assert(twins_begin(), "%s", said());
}

static void end(void)
{
    twins_end();
}

TestSuite(layers, .init = begin, .fini = end);

static void assert_alike(const struct twins *twins)
{
    cr_assert(lt(dbl, twins_difference(twins), tolerance));
}

Test(layers, embedding_is_that_of_the_host)
{
    enum { LENGTH = 5, VOCABULARY = 7 };
    struct parameter token[SIDES], position[SIDES];
    struct twins tokens = twins_of_whole(ROWS, 1, VOCABULARY);
    struct twins y = twins_of((size_t)ROWS * NARROW, 2);
    struct twins dy = twins_of((size_t)ROWS * NARROW, 3);

    twins_parameter((size_t)VOCABULARY * NARROW, 4, token);
    twins_parameter((size_t)LENGTH * NARROW, 6, position);
    for (int side = 0; side < SIDES; side++) {
        const struct embedding layer = {NARROW, LENGTH, &token[side], &position[side]};
        const int *numbers = (const int *)(const void *)tokens.at[side];

        sides[side]->embedding_forward(&layer, ROWS, numbers, y.at[side]);
        sides[side]->embedding_backward(&layer, ROWS, numbers, dy.at[side]);
    }
    assert_alike(&y);
    cr_assert(lt(dbl, twins_gradient(token), tolerance));
    cr_assert(lt(dbl, twins_gradient(position), tolerance));
}

static void linear_is_that_of_the_host(int in, int out, bool residual)
{
    struct parameter weight[SIDES], bias[SIDES];
    struct twins x = twins_of((size_t)(ROWS * in), 1);
    struct twins more = twins_of((size_t)(ROWS * out), 2);
    struct twins y = twins_of((size_t)(ROWS * out), 3);
    struct twins dy = twins_of((size_t)(ROWS * out), 4);
    struct twins dx = twins_of((size_t)(ROWS * in), 5);

    twins_parameter((size_t)(in * out), 6, weight);
    twins_parameter((size_t)out, 8, bias);
    for (int side = 0; side < SIDES; side++) {
        const struct linear layer = {in, out, &weight[side], &bias[side]};

        sides[side]->linear_forward(&layer, ROWS, x.at[side], residual ? more.at[side] : NULL,
                                    y.at[side]);
        sides[side]->linear_backward(&layer, ROWS, x.at[side], dy.at[side],
                                     residual ? dx.at[side] : NULL);
    }
    assert_alike(&y);
    assert_alike(&dx);
    cr_assert(lt(dbl, twins_gradient(weight), tolerance));
    cr_assert(lt(dbl, twins_gradient(bias), tolerance));
}

Test(layers, linear_layers_are_those_of_the_host)
{
    linear_is_that_of_the_host(NARROW, WIDE, true);
    linear_is_that_of_the_host(WIDE, NARROW, false);
}

static void norm_is_that_of_the_host(int width)
{
    struct parameter gain[SIDES], shift[SIDES];
    struct twins x = twins_of((size_t)(ROWS * width), 1);
    struct twins y = twins_of((size_t)(ROWS * width), 2);
    struct twins statistics = twins_of(2 * (size_t)ROWS, 3);
    struct twins dy = twins_of((size_t)(ROWS * width), 4);
    struct twins dx = twins_of((size_t)(ROWS * width), 5);

    twins_parameter((size_t)width, 6, gain);
    twins_parameter((size_t)width, 8, shift);
    for (int side = 0; side < SIDES; side++) {
        const struct norm layer = {width, &gain[side], &shift[side]};
        const struct norm_saved saved = {x.at[side], statistics.at[side]};

        sides[side]->norm_forward(&layer, ROWS, x.at[side], y.at[side], statistics.at[side]);
        sides[side]->norm_backward(&layer, ROWS, saved, dy.at[side], dx.at[side]);
    }
    assert_alike(&y);
    assert_alike(&statistics);
    assert_alike(&dx);
    cr_assert(lt(dbl, twins_gradient(gain), tolerance));
    cr_assert(lt(dbl, twins_gradient(shift), tolerance));
}

Test(layers, normalisation_is_that_of_the_host)
{
    norm_is_that_of_the_host(NARROW);
    norm_is_that_of_the_host(WIDE);
}

static void attention_is_that_of_the_host(int sequences, int length)
{
    const struct attention layer = {NARROW, 3, length};
    size_t rows = (size_t)sequences * (size_t)length;
    struct twins qkv = twins_of(rows * 3 * NARROW, 1);
    struct twins weights = twins_of(rows * 3 * (size_t)length, 2);
    struct twins y = twins_of(rows * NARROW, 3);
    struct twins scratch = twins_of(rows * (size_t)length, 4);
    struct twins dy = twins_of(rows * NARROW, 5);
    struct twins dqkv = twins_of(rows * 3 * NARROW, 6);

    for (int side = 0; side < SIDES; side++) {
        const struct attention_saved saved = {qkv.at[side], weights.at[side], scratch.at[side]};

        sides[side]->attention_forward(&layer, sequences, qkv.at[side], weights.at[side],
                                       y.at[side]);
        sides[side]->attention_backward(&layer, sequences, saved, dy.at[side], dqkv.at[side]);
    }
    assert_alike(&weights);
    assert_alike(&y);
    assert_alike(&dqkv);
}

Test(layers, attention_is_that_of_the_host)
{
    attention_is_that_of_the_host(40, 5);
    attention_is_that_of_the_host(2, WIDE);
}

Test(layers, gelu_is_that_of_the_host)
{
    enum { COUNT = 100001 };
    struct twins x = twins_of(COUNT, 1);
    struct twins y = twins_of(COUNT, 2);
    struct twins dy = twins_of(COUNT, 3);

    for (int i = 0; i < COUNT; i++) /* to where it bends, and beyond */
        x.at[HERE][i] *= 9;
    gpu_arithmetic.write(x.at[THERE], x.at[HERE], COUNT * sizeof(float));
    for (int side = 0; side < SIDES; side++) {
        sides[side]->gelu_forward(COUNT, x.at[side], y.at[side]);
        sides[side]->gelu_backward(COUNT, x.at[side], dy.at[side], dy.at[side]);
    }
    assert_alike(&y);
    assert_alike(&dy);
}

static void loss_is_that_of_the_host(int width)
{
    enum { LENGTH = 5 };
    struct twins logits = twins_of((size_t)(ROWS * width), 1);
    struct twins targets = twins_of_whole(ROWS, 2, width + 1);
    int *numbers = (int *)(void *)targets.at[HERE];
    struct loss loss[SIDES] = {{0}};

    for (int i = 0; i < ROWS; i++) {
        if (numbers[i] == width || i % LENGTH == 0)
            numbers[i] = LOSS_IGNORED;
        else if (i / LENGTH % 2) /* every other sequence is right */
            logits.at[HERE][i * width + numbers[i]] = 3;
    }
    gpu_arithmetic.write(targets.at[THERE], numbers, ROWS * sizeof(*numbers));
    gpu_arithmetic.write(logits.at[THERE], logits.at[HERE], (size_t)(ROWS * width) * sizeof(float));
    for (int side = 0; side < SIDES; side++)
        sides[side]->loss_of(width, LENGTH, ROWS, (const int *)(const void *)targets.at[side],
                             0.25f, logits.at[side], &loss[side]);
    assert_alike(&logits); /* waits, so the loss is there */
    cr_assert(epsilon_eq(dbl, loss[THERE].sum, loss[HERE].sum, 1e-5 * loss[HERE].sum));
    cr_assert(eq(long, loss[THERE].counted, loss[HERE].counted));
    cr_assert(eq(long, loss[THERE].right, loss[HERE].right));
    cr_assert(eq(long, loss[THERE].complete, loss[HERE].complete));
    cr_assert(ge(long, loss[HERE].complete, ROWS / LENGTH / 2));
    cr_assert(gt(long, ROWS, loss[HERE].counted));
}

Test(layers, loss_is_that_of_the_host)
{
    loss_is_that_of_the_host(NARROW);
    loss_is_that_of_the_host(WIDE);
}

Test(layers, the_first_of_several_most_probable_tokens_counts)
{
    static const float flat[2 * WIDE] = {0};
    static const int targets[2] = {0, 1};
    float *logits = gpu_arithmetic.alloc(sizeof(flat));
    int *there = gpu_arithmetic.alloc(sizeof(targets));
    struct loss loss = {0};

    gpu_arithmetic.write(logits, flat, sizeof(flat));
    gpu_arithmetic.write(there, targets, sizeof(targets));
    gpu_arithmetic.loss_of(WIDE, 1, 2, there, 1, logits, &loss);
    cr_assert(eq(int, gpu_arithmetic.finish(), RONDO_OK));
    cr_assert(eq(long, loss.right, 1));
    cr_assert(epsilon_eq(dbl, loss.sum, 2 * log(WIDE), 1e-4));
    gpu_arithmetic.release(logits);
    gpu_arithmetic.release(there);
}
