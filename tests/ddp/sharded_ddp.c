/* SPDX-License-Identifier: BSD-3-Clause */
/* sharded_ddp.c - the model of these tests, trained by the data-parallel core. */
#include "sharded.h"

#include <stdlib.h>
#include <string.h>

struct whole {
    float values[SHARDED_TOTAL], first[SHARDED_TOTAL], second[SHARDED_TOTAL];
};

static rondo_result open_ddp(rondo_comm *comm, struct whole *whole, rondo_ddp **ret_ddp)
{
    rondo_ddp_tensor tensors[SHARDED_PARAMETERS];
    rondo_ddp_model model = {.parameters = tensors, .parameter_count = SHARDED_PARAMETERS};
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    size_t at = 0;

    config.bucket_bytes = config.first_bucket_bytes = 1000; /* several buckets */
    for (int p = 0; p < SHARDED_PARAMETERS; p++) {
        tensors[p] = (rondo_ddp_tensor){sharded_model[p].name,  whole->values + at, NULL,
                                        sharded_model[p].count, RONDO_FLOAT32,      0};
        for (size_t i = 0; i < sharded_model[p].count; i++, at++)
            whole->values[at] = sharded_start(p, i);
    }
    return rondo_ddp_open(comm, &model, &config, ret_ddp);
}

static rondo_result step_ddp(rondo_comm *comm, struct whole *whole, rondo_ddp *ddp, uint64_t step)
{
    size_t at = SHARDED_TOTAL;
    rondo_result result = rondo_ddp_begin(ddp, 1);

    for (int p = SHARDED_PARAMETERS - 1; p >= 0 && !result; p--) {
        float *gradient = rondo_ddp_gradient(ddp, p);

        at -= sharded_model[p].count;
        for (size_t i = 0; i < sharded_model[p].count; i++)
            gradient[i] += sharded_gradient(whole->values[at + i], rondo_comm_rank(comm), i);
        result = rondo_ddp_gradient_ready(ddp, p);
    }
    if (!result)
        result = rondo_ddp_wait(ddp);
    for (int p = 0; p < SHARDED_PARAMETERS && !result; at += sharded_model[p++].count)
        rondo_adamw_step(&sharded_adamw, step, sharded_model[p].count, whole->values + at,
                         rondo_ddp_gradient(ddp, p), whole->first + at, whole->second + at);
    return result ? result : rondo_ddp_zero_gradients(ddp);
}

rondo_result sharded_train_ddp(rondo_comm *comm, struct sharded *job, char *sentence)
{
    struct whole *whole = calloc(1, sizeof(*whole));
    rondo_ddp *ddp = NULL;
    rondo_result result = open_ddp(comm, whole, &ddp);

    for (int step = 1; step <= job->steps && !result; step++)
        result = step_ddp(comm, whole, ddp, (uint64_t)step);
    if (rondo_comm_rank(comm) == 0)
        memcpy(job->values, whole->values, sizeof(job->values));
    rondo_ddp_close(ddp);
    free(whole);
    return result ? world_say(sentence, result, "%s", rondo_ddp_last_error()) : RONDO_OK;
}
