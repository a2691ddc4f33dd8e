/* SPDX-License-Identifier: BSD-3-Clause */
/* trees.c - micro-batches of a step added up as one tree, see trees.h. */
#include "trees.h"

#include "bodies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reals of several magnitudes: any other order of addition gives other bits. */
float trees_real(int micro_batch, size_t i)
{
    uint64_t hash = world_hash((uint64_t)micro_batch + 1000, i);
    float value = ldexpf((float)(hash >> 41), -23) + 0.5f;

    return ldexpf(hash & 1 ? -value : value, (int)(hash >> 1 & 7) - 4);
}

static float tree(int first, int count, size_t i)
{
    int left = 1;

    if (count == 1)
        return trees_real(first, i);
    while (2 * left < count)
        left *= 2;
    return tree(first, left, i) + tree(first + left, count - left, i);
}

void trees_reference(int micro_batches, float *ret_result)
{
    for (size_t i = 0; i < TREES_COUNT; i++)
        ret_result[i] = tree(0, micro_batches, i) / (float)micro_batches;
}

/* Adds up in float64; a third has all bits of a mantissa. */
static double tree64(int first, int count, size_t i)
{
    int left = 1;

    if (count == 1)
        return trees_real(first, i) / 3.;
    while (2 * left < count)
        left *= 2;
    return tree64(first, left, i) + tree64(first + left, count - left, i);
}

static rondo_result check64(const double *got, int micro_batches, char *sentence)
{
    for (size_t i = 0; i < TREES_COUNT; i++) {
        double wanted = tree64(0, micro_batches, i) / micro_batches;

        if (got[i] != wanted)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "element %zu is %.17g, not %.17g", i,
                             got[i], wanted);
    }
    return RONDO_OK;
}

/* One step of this rank: its micro-batches, one pass each. */
static rondo_result step(rondo_ddp *ddp, int first, int count)
{
    rondo_result result = RONDO_OK;

    for (int pass = 0; pass < count && !result; pass++) {
        float *singles;
        double *doubles;

        result = rondo_ddp_begin(ddp, pass == count - 1);
        if (result)
            return result;
        singles = rondo_ddp_gradient(ddp, 0);
        doubles = rondo_ddp_gradient(ddp, 1);
        for (size_t i = 0; i < TREES_COUNT; i++) {
            singles[i] += trees_real(first + pass, i);
            doubles[i] += trees_real(first + pass, i) / 3.;
        }
        if (!(result = rondo_ddp_gradient_ready(ddp, 0)) &&
            !(result = rondo_ddp_gradient_ready(ddp, 1)))
            result = rondo_ddp_wait(ddp);
    }
    return result;
}

rondo_result trees_of_micro_batches(rondo_comm *comm, void *argument, char *sentence)
{
    struct trees *trees = argument;
    double *memory = calloc(3 * TREES_COUNT, sizeof(*memory));
    rondo_ddp_tensor tensors[2] = {
        {"singles", memory, NULL, TREES_COUNT, RONDO_FLOAT32, 0},
        {"doubles", memory + TREES_COUNT, NULL, TREES_COUNT, RONDO_FLOAT64, 0},
    };
    rondo_ddp_model model = {tensors, 2, NULL, 0};
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    rondo_ddp *ddp = NULL;
    int count = trees->micro_batches / rondo_comm_size(comm);
    rondo_result result;

    if (trees->own)
        tensors[0].gradient = memory + 2 * TREES_COUNT;
    config.bucket_bytes = config.first_bucket_bytes = 100;
    config.accumulation = RONDO_DDP_TREE;
    config.average = RONDO_DDP_BY_PASSES;
    result = rondo_ddp_open(comm, &model, &config, &ddp);
    for (int i = 0; i < 2 && !result; i++) {
        result = rondo_ddp_zero_gradients(ddp);
        if (!result)
            result = step(ddp, rondo_comm_rank(comm) * count, count);
    }
    if (result)
        world_say(sentence, result, "%s", rondo_ddp_last_error());
    else
        result = check64(rondo_ddp_gradient(ddp, 1), trees->micro_batches, sentence);
    if (!result && rondo_comm_rank(comm) == 0)
        memcpy(trees->result, rondo_ddp_gradient(ddp, 0), sizeof(trees->result));
    rondo_ddp_close(ddp);
    free(memory);
    return result;
}
