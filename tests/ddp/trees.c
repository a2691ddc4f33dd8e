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

/* One step of this rank: its micro-batches, one pass each. The second parameter is half as long. */
static rondo_result step(rondo_ddp *ddp, int first, int count)
{
    rondo_result result = RONDO_OK;

    for (int pass = 0; pass < count && !result; pass++) {
        result = rondo_ddp_begin(ddp, pass == count - 1);
        for (int p = 0; p < 2 && !result; p++) {
            float *gradient = rondo_ddp_gradient(ddp, p);

            for (size_t i = 0; i < TREES_COUNT / (size_t)(p + 1); i++)
                gradient[i] += trees_real(first + pass, i);
            result = rondo_ddp_gradient_ready(ddp, p);
        }
        if (!result)
            result = rondo_ddp_wait(ddp);
    }
    return result;
}

rondo_result trees_of_micro_batches(rondo_comm *comm, void *argument, char *sentence)
{
    struct trees *trees = argument;
    float *memory = calloc(4 * TREES_COUNT, sizeof(*memory));
    rondo_ddp_tensor tensors[2] = {
        {"a", memory, NULL, TREES_COUNT, RONDO_FLOAT32, 0},
        {"b", memory + TREES_COUNT, NULL, TREES_COUNT / 2, RONDO_FLOAT32, 0},
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
    else if (memcmp(rondo_ddp_gradient(ddp, 0), rondo_ddp_gradient(ddp, 1),
                    TREES_COUNT / 2 * sizeof(float)) != 0)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "two equal parameters differ");
    else if (rondo_comm_rank(comm) == 0)
        memcpy(trees->result, rondo_ddp_gradient(ddp, 0), sizeof(trees->result));
    rondo_ddp_close(ddp);
    free(memory);
    return result;
}
