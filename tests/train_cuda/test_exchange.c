/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_exchange.c - gradients that are the caller's, in memory of a device: into buckets and out
 * again. One rank, whose average is what it gave. (The others' are what a training shows.)
 */
#include "tests/train_cuda/twins.h"

#include "train/common/say.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

enum { PARAMETERS = 3, EACH = 1000 };

struct world {
    rondo_comm *comm;
    rondo_ddp *ddp;
    float *values[PARAMETERS], *gradients[PARAMETERS]; /* of the device */
};

static void begin(void)
{
    cr_assert(twins_begin(), "%s", said());
}

static void end(void)
{
    twins_end();
}

TestSuite(exchange, .init = begin, .fini = end);

/* The last parameter's gradient is the library's. */
static void world_open(struct world *world)
{
    static const char *const names[PARAMETERS] = {"first", "second", "third"};
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    rondo_ddp_tensor tensors[PARAMETERS];
    const rondo_ddp_model model = {.parameters = tensors, .parameter_count = PARAMETERS};

    memset(world, 0, sizeof(*world));
    for (int i = 0; i < PARAMETERS; i++) {
        world->values[i] = gpu_arithmetic.alloc(EACH * sizeof(float));
        world->gradients[i] =
            i + 1 < PARAMETERS ? gpu_arithmetic.alloc(EACH * sizeof(float)) : NULL;
        tensors[i] = (rondo_ddp_tensor){.name = names[i],
                                        .data = world->values[i],
                                        .gradient = world->gradients[i],
                                        .count = EACH,
                                        .type = RONDO_FLOAT32};
    }
    config.first_bucket_bytes = config.bucket_bytes = EACH;
    config.check_nan = 0;
    gpu_exchange(&config.device);
    cr_assert(eq(int, gpu_arithmetic.finish(), RONDO_OK));
    cr_assert(eq(int, rondo_comm_open(NULL, &world->comm), RONDO_OK), "%s", rondo_last_error(NULL));
    cr_assert(eq(int, rondo_ddp_open(world->comm, &model, &config, &world->ddp), RONDO_OK), "%s",
              rondo_ddp_last_error());
}

static void world_close(struct world *world)
{
    rondo_ddp_close(world->ddp);
    rondo_comm_close(world->comm);
    for (int i = 0; i < PARAMETERS; i++) {
        gpu_arithmetic.release(world->values[i]);
        gpu_arithmetic.release(world->gradients[i]);
    }
}

/* The first parameter first, which is not what the buckets were made for. */
static void step(struct world *world, unsigned seed, float (*ret_given)[EACH])
{
    cr_assert(eq(int, rondo_ddp_begin(world->ddp, 1), RONDO_OK));
    for (int i = 0; i < PARAMETERS; i++) {
        for (unsigned j = 0; j < EACH; j++)
            ret_given[i][j] = (float)(seed + (unsigned)i * EACH + j);
        gpu_arithmetic.write(rondo_ddp_gradient(world->ddp, i), ret_given[i], sizeof(*ret_given));
        cr_assert(eq(int, rondo_ddp_gradient_ready(world->ddp, i), RONDO_OK));
    }
    cr_assert(eq(int, rondo_ddp_wait(world->ddp), RONDO_OK), "%s", rondo_ddp_last_error());
}

static void assert_gradient(const struct world *world, int parameter, const float *wanted)
{
    float found[EACH];
    const void *from = rondo_ddp_gradient(world->ddp, parameter);

    cr_assert(eq(int, gpu_arithmetic.read(found, from, sizeof(found)), RONDO_OK));
    for (int i = 0; i < EACH; i++)
        cr_assert(eq(flt, found[i], wanted[i]));
}

Test(exchange, gradients_go_into_buckets_and_out_again)
{
    static const float zeros[EACH];
    float given[PARAMETERS][EACH];
    struct world world;

    world_open(&world);
    for (unsigned number = 0; number < 3; number++) {
        step(&world, 10 * number, given);
        for (int i = 0; i < PARAMETERS; i++)
            assert_gradient(&world, i, given[i]);
    }
    cr_assert(eq(int, rondo_ddp_zero_gradients(world.ddp), RONDO_OK));
    for (int i = 0; i < PARAMETERS; i++)
        assert_gradient(&world, i, zeros);
    world_close(&world);
}

Test(exchange, the_device_tells_when_buckets_travelled)
{
    rondo_ddp_statistics all;
    float given[PARAMETERS][EACH];
    struct world world;

    world_open(&world);
    step(&world, 1, given);
    step(&world, 2, given);
    cr_assert(eq(int, rondo_ddp_statistics_get(world.ddp, &all), RONDO_OK));
    cr_assert(eq(int, all.buckets, PARAMETERS));
    cr_assert(eq(int, all.rebuilt, 1));
    cr_assert(ge(u64, all.bytes, 2 * PARAMETERS * EACH * sizeof(float)));
    for (int i = 0; i < PARAMETERS; i++) {
        rondo_ddp_bucket_statistics bucket;

        cr_assert(eq(int, rondo_ddp_bucket_statistics_get(world.ddp, i, &bucket), RONDO_OK));
        cr_assert(ge(dbl, bucket.ready, 0));
        cr_assert(ge(dbl, bucket.started, bucket.ready));
        cr_assert(ge(dbl, bucket.finished, bucket.started));
    }
    world_close(&world);
}

static rondo_result no_copy(void *context, void *to, const void *from, size_t bytes)
{
    return from ? RONDO_ERROR_SYSTEM : RONDO_OK;
}

Test(exchange, a_copy_that_fails_is_told_by_the_wait)
{
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    rondo_ddp_tensor tensor = {.name = "only", .count = EACH, .type = RONDO_FLOAT32};
    const rondo_ddp_model model = {.parameters = &tensor, .parameter_count = 1};
    struct world world = {.comm = NULL};

    tensor.data = world.values[0] = gpu_arithmetic.alloc(EACH * sizeof(float));
    tensor.gradient = world.gradients[0] = gpu_arithmetic.alloc(EACH * sizeof(float));
    config.check_nan = 0;
    gpu_exchange(&config.device);
    config.device.copy = no_copy;
    cr_assert(eq(int, gpu_arithmetic.finish(), RONDO_OK));
    cr_assert(eq(int, rondo_comm_open(NULL, &world.comm), RONDO_OK));
    cr_assert(eq(int, rondo_ddp_open(world.comm, &model, &config, &world.ddp), RONDO_OK));
    cr_assert(eq(int, rondo_ddp_begin(world.ddp, 1), RONDO_OK));
    cr_assert(eq(int, rondo_ddp_gradient_ready(world.ddp, 0), RONDO_OK));
    cr_assert(eq(int, rondo_ddp_wait(world.ddp), RONDO_ERROR_SYSTEM));
    cr_assert(ne(ptr, strstr(rondo_ddp_last_error(), "copying gradients on its device"), NULL));
    world_close(&world);
}
