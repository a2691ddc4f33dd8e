/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 09_shards.c - a model of which each rank holds a share, at three levels. Every level learns the
 * same bits; what differs is the memory.
 *
 * The model has four layers, one unit each. Its loss is the distance to a target that each rank
 * sees with another error, so that the gradient of a value is its distance to the target.
 */
#include <rondo/train.h>

#include <stdio.h>

enum { LAYERS = 4, WIDTH = 10000, STEPS = 30 };

static const rondo_adamw adamw = {.rate = 0.1f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f};

/* Forward and backward of one layer, in one: adds to the gradients, returns the loss. */
static double learn(const float *values, float *gradients, int layer, int rank)
{
    double loss = 0;

    for (int i = 0; i < WIDTH; i++) {
        float target = (float)((i + layer) % 10) + (float)(rank % 2 ? 1 : -1) / 8;
        float distance = values[i] - target;

        gradients[i] += distance;
        loss += (double)(distance * distance) / 2;
    }
    return loss;
}

static rondo_result run_layer(rondo_shards *shards, int layer, int rank, double *loss)
{
    const float *values;
    float *gradients;
    rondo_result result = rondo_shards_gather(shards, layer);

    if (!result && layer > 0) /* the next one comes while this one computes */
        result = rondo_shards_prefetch(shards, layer - 1);
    if (result || (result = rondo_shards_parameter(shards, layer, 0, &values)) ||
        (result = rondo_shards_gradient(shards, layer, 0, &gradients)))
        return result;
    *loss += learn(values, gradients, layer, rank);
    if ((result = rondo_shards_reduce(shards, layer)))
        return result;
    return rondo_shards_release(shards, layer);
}

/* Called for each piece of this rank's shards. */
static void update(void *step, const rondo_update *work)
{
    rondo_adamw_step(&adamw, *(uint64_t *)step, work->count, work->values, work->gradients,
                     work->states[0], work->states[1]);
}

static rondo_result train(rondo_shards *shards, rondo_comm *comm, double *ret_loss)
{
    rondo_result result = RONDO_OK;

    for (uint64_t step = 1; step <= STEPS && !result; step++) {
        double norm;

        *ret_loss = 0;
        for (int layer = LAYERS - 1; layer >= 0 && !result; layer--)
            result = run_layer(shards, layer, rondo_comm_rank(comm), ret_loss);
        if (!result)
            result = rondo_shards_clip(shards, 100, &norm);
        if (!result)
            result = rondo_shards_step(shards, update, &step);
    }
    return result ? result
                  : rondo_all_reduce(ret_loss, ret_loss, 1, RONDO_FLOAT64, RONDO_AVG, comm, NULL);
}

static rondo_result run_level(rondo_comm *comm, int level)
{
    rondo_shards_config config = {.struct_size = sizeof(config), .level = level, .states = 2};
    rondo_parameter_spec spec = {"values", WIDTH, NULL}; /* NULL: zeros */
    rondo_shards_memory memory;
    rondo_shards *shards = NULL;
    double loss = 0;
    rondo_result result = rondo_shards_open(&config, comm, &shards);

    for (int layer = 0; layer < LAYERS && !result; layer++)
        result = rondo_shards_add_unit(shards, &spec, 1);
    if (!result)
        result = train(shards, comm, &loss);
    if (!result)
        result = rondo_shards_memory_used(shards, &memory);
    if (result)
        fprintf(stderr, "%s\n", rondo_ddp_last_error());
    else if (rondo_comm_rank(comm) == 0)
        printf("level %d: loss %.9f, KiB per rank: parameters %zu, gradients %zu, states %zu, "
               "passing %zu\n",
               level, loss / LAYERS / WIDTH, memory.parameters >> 10, memory.gradients >> 10,
               memory.states >> 10, memory.passing >> 10);
    rondo_shards_close(shards);
    return result;
}

int main(void)
{
    rondo_comm *comm = NULL;
    rondo_result result = rondo_comm_open(NULL, &comm);

    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(NULL));
    for (int level = RONDO_SHARD_OPTIMIZER; level <= RONDO_SHARD_PARAMETERS && !result; level++)
        result = run_level(comm, level);
    rondo_comm_close(comm);
    return result != RONDO_OK;
}
