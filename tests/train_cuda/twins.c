/* SPDX-License-Identifier: BSD-3-Clause */
/* twins.c - see twins.h. */
#include "tests/train_cuda/twins.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

const struct arithmetic *const sides[SIDES] = {&arithmetic_host, &gpu_arithmetic};

enum { MOST = 128 };
static void *taken[MOST][SIDES];
static int takings;

bool twins_begin(void)
{
    return !gpu_open();
}

void twins_end(void)
{
    while (takings--)
        for (int side = 0; side < SIDES; side++)
            sides[side]->release(taken[takings][side]);
    gpu_close();
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static struct twins memory_of(size_t count)
{
    struct twins twins = {.count = count};

    assert(takings < MOST);
    for (int side = 0; side < SIDES; side++)
        twins.at[side] = taken[takings][side] = sides[side]->alloc(count * sizeof(float));
    takings++;
    return twins;
}

struct twins twins_of(size_t count, unsigned seed)
{
    struct twins twins = memory_of(count);

    for (size_t i = 0; i < count; i++)
        twins.at[HERE][i] = (float)next(&seed) / (float)(1 << 23) - 1;
    gpu_arithmetic.write(twins.at[THERE], twins.at[HERE], count * sizeof(float));
    return twins;
}

struct twins twins_of_whole(size_t count, unsigned seed, int most)
{
    struct twins twins = memory_of(count);
    int *numbers = (int *)(void *)twins.at[HERE];

    for (size_t i = 0; i < count; i++)
        numbers[i] = (int)(next(&seed) % (unsigned)most);
    gpu_arithmetic.write(twins.at[THERE], numbers, count * sizeof(*numbers));
    return twins;
}

double twins_difference(const struct twins *twins)
{
    float *there = malloc(twins->count * sizeof(*there));
    rondo_result result =
        gpu_arithmetic.read(there, twins->at[THERE], twins->count * sizeof(*there));
    double worst = result ? INFINITY : 0;

    for (size_t i = 0; i < twins->count && !result; i++) {
        double here = (double)twins->at[HERE][i];
        double apart = fabs((double)there[i] - here) / fmax(1, fabs(here));

        if (!(apart <= worst)) /* also if it is no number */
            worst = isnan(apart) ? INFINITY : apart;
    }
    free(there);
    return worst;
}

void twins_parameter(size_t count, unsigned seed, struct parameter *ret_parameters)
{
    struct twins values = twins_of(count, seed);
    struct twins gradients = twins_of(count, seed + 1); /* layers add to them */

    for (int side = 0; side < SIDES; side++)
        ret_parameters[side] = (struct parameter){
            .count = count, .value = values.at[side], .gradient = gradients.at[side]};
}

double twins_gradient(const struct parameter *parameters)
{
    const struct twins gradients = {{parameters[HERE].gradient, parameters[THERE].gradient},
                                    parameters[HERE].count};

    return twins_difference(&gradients);
}
