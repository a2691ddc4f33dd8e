/* SPDX-License-Identifier: BSD-3-Clause */
/* test_optimizer.c - norm, clipping and AdamW of the device beside those of the host. */
#include "tests/train_cuda/twins.h"

#include "train/common/say.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

enum { PARAMETERS = 3, ALL = 1 + 70000 + 300 };

static void begin(void)
{
    cr_assert(twins_begin(), "%s", said());
}

static void end(void)
{
    twins_end();
}

TestSuite(optimizer, .init = begin, .fini = end);

struct world {
    struct parameter parameters[SIDES][PARAMETERS];
    struct model models[SIDES];
    struct twins first, second;
};

static void world_open(struct world *world)
{
    static const size_t counts[PARAMETERS] = {1, 70000, 300};

    *world = (struct world){.first = twins_of(ALL, 1), .second = twins_of(ALL, 2)};
    for (size_t i = 0; i < ALL; i++) /* means of squares */
        world->second.at[HERE][i] = fabsf(world->second.at[HERE][i]);
    gpu_arithmetic.write(world->second.at[THERE], world->second.at[HERE], ALL * sizeof(float));
    for (unsigned i = 0; i < PARAMETERS; i++) {
        struct parameter both[SIDES];

        twins_parameter(counts[i], 3 + 2 * i, both);
        for (int side = 0; side < SIDES; side++) {
            world->parameters[side][i] = both[side];
            world->parameters[side][i].decays = i == 1;
        }
    }
    for (int side = 0; side < SIDES; side++)
        world->models[side] = (struct model){.with = sides[side],
                                             .parameters = world->parameters[side],
                                             .parameter_count = PARAMETERS};
}

/* Steps on both sides; the norms, by side. */
static void steps(struct world *world, double clip, double *ret_norms)
{
    static const optimizer_function functions[SIDES] = {optimizer_host, gpu_optimize};

    for (int side = 0; side < SIDES; side++) {
        const struct optimizer_step step = {
            .model = &world->models[side],
            .states = {world->first.at[side], world->second.at[side]},
            .settings = {.rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, 1e-8f, 0.1f},
            .number = 3,
            .clip = clip};

        cr_assert(eq(int, functions[side](&step, &ret_norms[side]), RONDO_OK), "%s", said());
    }
}

static void assert_values_alike(const struct world *world)
{
    cr_assert(lt(dbl, twins_difference(&world->first), 1e-6));
    cr_assert(lt(dbl, twins_difference(&world->second), 1e-6));
    for (int i = 0; i < PARAMETERS; i++) {
        const struct twins values = {
            {world->parameters[HERE][i].value, world->parameters[THERE][i].value},
            world->parameters[HERE][i].count};

        cr_assert(lt(dbl, twins_difference(&values), 1e-6));
    }
}

Test(optimizer, steps_are_those_of_the_host)
{
    static const double clips[] = {0, 1, 1e6};

    for (size_t i = 0; i < sizeof(clips) / sizeof(clips[0]); i++) {
        struct world world;
        double norms[SIDES];

        world_open(&world);
        steps(&world, clips[i], norms);
        cr_assert(epsilon_eq(dbl, norms[THERE], norms[HERE], 1e-9 * norms[HERE]));
        assert_values_alike(&world);
    }
}

Test(optimizer, a_gradient_that_is_no_number_shows_in_the_norm)
{
    static const float bad[] = {NAN, INFINITY};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct world world;
        double norms[SIDES];

        world_open(&world);
        world.parameters[HERE][1].gradient[69999] = bad[i];
        gpu_arithmetic.write(world.parameters[THERE][1].gradient + 69999, &bad[i], sizeof(bad[i]));
        steps(&world, 1, norms);
        cr_assert(eq(int, isfinite(norms[HERE]) || isfinite(norms[THERE]), 0));
    }
}
