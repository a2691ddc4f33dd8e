/* SPDX-License-Identifier: BSD-3-Clause */
/* sharded.c - what ranks do in the tests of shards. */
#include "sharded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = SHARDED_PARAMETERS };

/* Odd lengths, empty parameters, an empty unit, a unit of one element. */
const struct sharded_parameter sharded_model[PARAMETERS] = {
    {"embedding", 0, 0, 257}, {"nothing", 0, 1, 0}, {"weight", 0, 2, 33}, {"scale", 1, 0, 1},
    {"gap", 2, 0, 0},         {"wide", 3, 0, 700},  {"bias", 3, 1, 5},    {"head", 4, 0, 295},
};

const rondo_adamw sharded_adamw = {
    .rate = 0.05f, .beta1 = 0.9f, .beta2 = 0.95f, .epsilon = 1e-8f, .decay = 0.01f};

float sharded_start(int parameter, size_t i)
{
    return cosf((float)parameter + (float)i * 0.37f);
}

float sharded_gradient(float value, int micro_batch, size_t i)
{
    return sinf(value * 3 + (float)micro_batch * 0.7f + (float)(i % 97)) * (float)(1 + i % 3);
}

/* ---- Without shards -------------------------------------------------------------------------- */

struct plain {
    float values[SHARDED_TOTAL], first[SHARDED_TOTAL], second[SHARDED_TOTAL];
    float tree[8][SHARDED_TOTAL];
};

/* tree(a, m) of ddp.h over passes; a pass is summed up over ranks by the library. */
static rondo_result plain_tree(struct plain *plain, int first, int passes, float *to,
                               rondo_comm *comm)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), half = 1;
    rondo_result result;

    if (passes == 1) {
        size_t at = 0;

        for (int p = 0; p < PARAMETERS; p++)
            for (size_t i = 0; i < sharded_model[p].count; i++, at++)
                to[at] = sharded_gradient(plain->values[at], first * size + rank, i);
        return rondo_all_reduce(to, to, SHARDED_TOTAL, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    }
    while (2 * half < passes)
        half *= 2;
    result = plain_tree(plain, first, half, to, comm);
    if (!result)
        result = plain_tree(plain, first + half, passes - half, to + SHARDED_TOTAL, comm);
    for (size_t i = 0; i < SHARDED_TOTAL; i++)
        to[i] = to[i] + to[SHARDED_TOTAL + i];
    return result;
}

static rondo_result plain_train(rondo_comm *comm, struct sharded *job, char *sentence)
{
    struct plain *plain = calloc(1, sizeof(*plain));
    float divisor =
        (float)(job->average == RONDO_DDP_BY_PASSES ? rondo_comm_size(comm) * job->passes
                                                    : rondo_comm_size(comm));
    size_t at = 0;
    rondo_result result = RONDO_OK;

    for (int p = 0; p < PARAMETERS; p++)
        for (size_t i = 0; i < sharded_model[p].count; i++, at++)
            plain->values[at] = sharded_start(p, i);
    for (int step = 1; step <= job->steps && !result; step++) {
        float *sum = plain->tree[0];
        rondo_span span = {sum, SHARDED_TOTAL};
        double norm = 0;

        result = plain_tree(plain, 0, job->passes, sum, comm);
        for (size_t i = 0; i < SHARDED_TOTAL; i++)
            sum[i] /= divisor;
        if (!result && job->limit > 0)
            result = rondo_clip(&span, 1, job->limit, NULL, &norm);
        rondo_adamw_step(&sharded_adamw, (uint64_t)step, SHARDED_TOTAL, plain->values, sum,
                         plain->first, plain->second);
        if (rondo_comm_rank(comm) == 0)
            job->norm = norm;
    }
    if (rondo_comm_rank(comm) == 0)
        memcpy(job->values, plain->values, sizeof(job->values));
    free(plain);
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

/* ---- With shards ----------------------------------------------------------------------------- */

rondo_result sharded_open(rondo_comm *comm, const struct sharded *job, rondo_shards **ret_shards)
{
    rondo_shards_config config = {.struct_size = sizeof(config),
                                  .level = job->level,
                                  .states = 2,
                                  .average = job->average,
                                  .check_nan = 1};
    rondo_result result = rondo_shards_open(&config, comm, ret_shards);

    for (int unit = 0, p = 0; unit < SHARDED_UNITS && !result; unit++) {
        rondo_parameter_spec specs[4];
        float *values[4];
        size_t count = 0;

        for (; p < PARAMETERS && sharded_model[p].unit == unit; p++, count++) {
            values[count] = malloc((sharded_model[p].count + 1) * sizeof(float));
            for (size_t i = 0; i < sharded_model[p].count; i++)
                values[count][i] = sharded_start(p, i);
            specs[count] =
                (rondo_parameter_spec){sharded_model[p].name, sharded_model[p].count,
                                       rondo_comm_rank(comm) == 0 ? values[count] : NULL};
        }
        result = rondo_shards_add_unit(*ret_shards, specs, count);
        while (count > 0)
            free(values[--count]);
    }
    return result;
}

/* A forward pass looks at every parameter. */
static rondo_result forward(rondo_shards *shards)
{
    rondo_result result = RONDO_OK;

    for (int unit = 0, p = 0; unit < SHARDED_UNITS && !result; unit++) {
        result = rondo_shards_gather(shards, unit);
        if (!result && unit + 1 < SHARDED_UNITS)
            result = rondo_shards_prefetch(shards, unit + 1);
        for (; p < PARAMETERS && sharded_model[p].unit == unit && !result; p++) {
            const float *values;

            result = rondo_shards_parameter(shards, unit, sharded_model[p].index, &values);
            for (size_t i = 0; i < sharded_model[p].count && !result; i++)
                if (!isfinite(values[i]))
                    result = RONDO_ERROR_INTERNAL;
        }
        if (!result)
            result = rondo_shards_release(shards, unit);
    }
    return result;
}

static rondo_result backward_unit(rondo_shards *shards, int unit, int micro_batch)
{
    rondo_result result = RONDO_OK;

    for (int p = 0; p < PARAMETERS && !result; p++) {
        const float *values;
        float *gradients;

        if (sharded_model[p].unit != unit)
            continue;
        result = rondo_shards_parameter(shards, unit, sharded_model[p].index, &values);
        if (!result)
            result = rondo_shards_gradient(shards, unit, sharded_model[p].index, &gradients);
        for (size_t i = 0; i < sharded_model[p].count && !result; i++)
            gradients[i] += sharded_gradient(values[i], micro_batch, i);
    }
    return result;
}

static rondo_result backward(rondo_shards *shards, int micro_batch)
{
    rondo_result result = RONDO_OK;

    for (int unit = SHARDED_UNITS - 1; unit >= 0 && !result; unit--) {
        result = rondo_shards_gather(shards, unit);
        if (!result && unit > 0)
            result = rondo_shards_prefetch(shards, unit - 1);
        if (!result)
            result = backward_unit(shards, unit, micro_batch);
        if (!result)
            result = rondo_shards_reduce(shards, unit);
        if (!result)
            result = rondo_shards_release(shards, unit);
    }
    return result;
}

static void update(void *context, const rondo_update *work)
{
    rondo_adamw_step(&sharded_adamw, *(uint64_t *)context, work->count, work->values,
                     work->gradients, work->states[0], work->states[1]);
}

rondo_result sharded_step(rondo_comm *comm, rondo_shards *shards, const struct sharded *job,
                          uint64_t step, double *ret_norm)
{
    rondo_result result = RONDO_OK;

    for (int pass = 0; pass < job->passes && !result; pass++) {
        result = forward(shards);
        if (!result)
            result = backward(shards, pass * rondo_comm_size(comm) + rondo_comm_rank(comm));
    }
    if (!result && job->limit > 0)
        result = rondo_shards_clip(shards, job->limit, ret_norm);
    return result ? result : rondo_shards_step(shards, update, &step);
}

/* New shards with the parameters and states of the old ones, as from a checkpoint. */
static rondo_result carry_over(rondo_comm *comm, const struct sharded *job, rondo_shards **shards)
{
    rondo_shards *next = NULL;
    rondo_result result = sharded_open(comm, job, &next);

    for (int p = 0; p < PARAMETERS && !result; p++)
        for (int state = -1; state < 2 && !result; state++) {
            float *values = malloc((sharded_model[p].count + 1) * sizeof(float));

            result = rondo_shards_export(*shards, sharded_model[p].unit, sharded_model[p].index,
                                         state, values);
            if (!result)
                result = rondo_shards_import(next, sharded_model[p].unit, sharded_model[p].index,
                                             state, values);
            free(values);
        }
    rondo_shards_close(*shards);
    *shards = next;
    return result;
}

/* The values at the end; all ranks must have the same. */
static rondo_result hand_out(rondo_comm *comm, rondo_shards *shards, struct sharded *job)
{
    float values[SHARDED_TOTAL], theirs[SHARDED_TOTAL];
    size_t at = 0;
    rondo_result result = RONDO_OK;

    for (int p = 0; p < PARAMETERS && !result; at += sharded_model[p++].count)
        result = rondo_shards_export(shards, sharded_model[p].unit, sharded_model[p].index, -1,
                                     values + at);
    if (!result)
        result = rondo_broadcast(values, theirs, SHARDED_TOTAL, RONDO_FLOAT32, 0, comm, NULL);
    if (!result && memcmp(values, theirs, sizeof(values)) != 0)
        result = RONDO_ERROR_INTERNAL;
    if (rondo_comm_rank(comm) == 0) {
        memcpy(job->values, values, sizeof(values));
        rondo_shards_memory_used(shards, &job->memory);
    }
    return result;
}

rondo_result sharded_train(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded *job = argument;
    rondo_shards *shards = NULL;
    rondo_result result;
    double norm = 0;

    if (job->level == SHARDED_DDP)
        return sharded_train_ddp(comm, job, sentence);
    if (job->level == SHARDED_PLAIN)
        return plain_train(comm, job, sentence);
    result = sharded_open(comm, job, &shards);
    for (int step = 1; step <= job->steps && !result; step++) {
        result = sharded_step(comm, shards, job, (uint64_t)step, &norm);
        if (!result && step == job->stop)
            result = carry_over(comm, job, &shards);
    }
    if (!result)
        result = hand_out(comm, shards, job);
    if (rondo_comm_rank(comm) == 0)
        job->norm = norm;
    rondo_shards_close(shards);
    return result ? world_say(sentence, result, "%s", rondo_ddp_last_error()) : RONDO_OK;
}
