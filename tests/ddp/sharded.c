/* SPDX-License-Identifier: BSD-3-Clause */
/* sharded.c - what ranks do in the tests of shards. */
#include "sharded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 8 };

/* Odd lengths, empty parameters, an empty unit, a unit of one element. */
static const struct {
    const char *name;
    int unit, index; /* in the unit */
    size_t count;
} model[PARAMETERS] = {
    {"embedding", 0, 0, 257}, {"nothing", 0, 1, 0}, {"weight", 0, 2, 33}, {"scale", 1, 0, 1},
    {"gap", 2, 0, 0},         {"wide", 3, 0, 700},  {"bias", 3, 1, 5},    {"head", 4, 0, 295},
};

static const rondo_adamw adamw = {
    .rate = 0.05f, .beta1 = 0.9f, .beta2 = 0.95f, .epsilon = 1e-8f, .decay = 0.01f};

static float start_of(int parameter, size_t i)
{
    return cosf((float)parameter + (float)i * 0.37f);
}

static float gradient_of(float value, int micro_batch, size_t i)
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
            for (size_t i = 0; i < model[p].count; i++, at++)
                to[at] = gradient_of(plain->values[at], first * size + rank, i);
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
        for (size_t i = 0; i < model[p].count; i++, at++)
            plain->values[at] = start_of(p, i);
    for (int step = 1; step <= job->steps && !result; step++) {
        float *sum = plain->tree[0];
        rondo_span span = {sum, SHARDED_TOTAL};
        double norm = 0;

        result = plain_tree(plain, 0, job->passes, sum, comm);
        for (size_t i = 0; i < SHARDED_TOTAL; i++)
            sum[i] /= divisor;
        if (!result && job->limit > 0)
            result = rondo_clip(&span, 1, job->limit, NULL, &norm);
        rondo_adamw_step(&adamw, (uint64_t)step, SHARDED_TOTAL, plain->values, sum, plain->first,
                         plain->second);
        if (rondo_comm_rank(comm) == 0)
            job->norm = norm;
    }
    if (rondo_comm_rank(comm) == 0)
        memcpy(job->values, plain->values, sizeof(job->values));
    free(plain);
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

/* ---- With shards ----------------------------------------------------------------------------- */

static rondo_result open_shards(rondo_comm *comm, const struct sharded *job,
                                rondo_shards **ret_shards)
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

        for (; p < PARAMETERS && model[p].unit == unit; p++, count++) {
            values[count] = malloc((model[p].count + 1) * sizeof(float));
            for (size_t i = 0; i < model[p].count; i++)
                values[count][i] = start_of(p, i);
            specs[count] = (rondo_parameter_spec){
                model[p].name, model[p].count, rondo_comm_rank(comm) == 0 ? values[count] : NULL};
        }
        result = rondo_shards_add_unit(*ret_shards, specs, count);
        while (count > 0)
            free(values[--count]);
    }
    return result;
}

/* As a forward pass: look at every parameter. */
static rondo_result forward(rondo_shards *shards)
{
    rondo_result result = RONDO_OK;

    for (int unit = 0, p = 0; unit < SHARDED_UNITS && !result; unit++) {
        result = rondo_shards_gather(shards, unit);
        if (!result && unit + 1 < SHARDED_UNITS)
            result = rondo_shards_prefetch(shards, unit + 1);
        for (; p < PARAMETERS && model[p].unit == unit && !result; p++) {
            const float *values;

            result = rondo_shards_parameter(shards, unit, model[p].index, &values);
            for (size_t i = 0; i < model[p].count && !result; i++)
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

        if (model[p].unit != unit)
            continue;
        result = rondo_shards_parameter(shards, unit, model[p].index, &values);
        if (!result)
            result = rondo_shards_gradient(shards, unit, model[p].index, &gradients);
        for (size_t i = 0; i < model[p].count && !result; i++)
            gradients[i] += gradient_of(values[i], micro_batch, i);
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
    rondo_adamw_step(&adamw, *(uint64_t *)context, work->count, work->values, work->gradients,
                     work->states[0], work->states[1]);
}

static rondo_result train_step(rondo_comm *comm, rondo_shards *shards, const struct sharded *job,
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
    rondo_result result = open_shards(comm, job, &next);

    for (int p = 0; p < PARAMETERS && !result; p++)
        for (int state = -1; state < 2 && !result; state++) {
            float *values = malloc((model[p].count + 1) * sizeof(float));

            result = rondo_shards_export(*shards, model[p].unit, model[p].index, state, values);
            if (!result)
                result = rondo_shards_import(next, model[p].unit, model[p].index, state, values);
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

    for (int p = 0; p < PARAMETERS && !result; at += model[p++].count)
        result = rondo_shards_export(shards, model[p].unit, model[p].index, -1, values + at);
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

    if (job->level == 0)
        return plain_train(comm, job, sentence);
    result = open_shards(comm, job, &shards);
    for (int step = 1; step <= job->steps && !result; step++) {
        result = train_step(comm, shards, job, (uint64_t)step, &norm);
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

/* ---- What goes wrong ------------------------------------------------------------------------- */

static rondo_result expect(rondo_result result, rondo_result wanted, const char *part,
                           char *sentence)
{
    if (result == wanted && strstr(rondo_ddp_last_error(), part))
        return RONDO_OK;
    return world_say(sentence, RONDO_ERROR_INTERNAL, "%s instead of \"%s\": %s",
                     rondo_result_string(result), part, rondo_ddp_last_error());
}

rondo_result sharded_mismatch(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_shards_config config = {.struct_size = sizeof(config), .level = 3};
    rondo_parameter_spec spec = {"w", rondo_comm_rank(comm) == 1 ? 4 : 3, NULL};
    rondo_shards *shards = NULL;
    rondo_result result;

    config.states = rondo_comm_rank(comm) == 1;
    result = expect(rondo_shards_open(&config, comm, &shards), RONDO_ERROR_MISMATCH,
                    "Rank 1 has settings", sentence);
    config.states = 0;
    if (!result)
        result = rondo_shards_open(&config, comm, &shards);
    if (!result)
        result = expect(rondo_shards_add_unit(shards, &spec, 1), RONDO_ERROR_MISMATCH,
                        "Rank 1 has a unit", sentence);
    rondo_shards_close(shards);
    return result;
}

rondo_result sharded_nan(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded job = {.level = *(int *)argument, .passes = 1};
    rondo_shards *shards = NULL;
    float *gradient;
    uint64_t step = 1;
    double norm;
    rondo_result result = open_shards(comm, &job, &shards);

    if (!result)
        result = rondo_shards_gradient(shards, 3, 1, &gradient);
    if (!result && rondo_comm_rank(comm) == 1)
        gradient[4] = -INFINITY;
    if (!result)
        result = rondo_shards_reduce(shards, 3);
    if (!result)
        result = expect(rondo_shards_step(shards, update, &step), RONDO_ERROR_INVALID,
                        "Rank 1 has a gradient that is no number: element 4 of 'bias'", sentence);
    if (!result) /* and it goes on */
        result = train_step(comm, shards, &job, 1, &norm);
    rondo_shards_close(shards);
    return result;
}

rondo_result sharded_misuse(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded job = {.level = RONDO_SHARD_PARAMETERS, .passes = 1, .limit = 1};
    rondo_shards *shards = NULL;
    const float *values;
    double norm;
    float some[1] = {0};
    rondo_result result = open_shards(comm, &job, &shards);

    if (!result)
        result = expect(rondo_shards_parameter(shards, 0, 0, &values), RONDO_ERROR_INVALID,
                        "'embedding' is not here", sentence);
    if (!result)
        result = expect(rondo_shards_gather(shards, SHARDED_UNITS), RONDO_ERROR_INVALID,
                        "no unit 5", sentence);
    if (!result)
        result = expect(rondo_shards_parameter(shards, 1, 1, &values), RONDO_ERROR_INVALID,
                        "no parameter 1", sentence);
    if (!result)
        result = expect(rondo_shards_import(shards, 1, 0, 2, some), RONDO_ERROR_INVALID,
                        "no state 2", sentence);
    if (!result && !(result = rondo_shards_reduce(shards, 1)))
        result = rondo_shards_clip(shards, 1, &norm);
    if (!result)
        result =
            expect(rondo_shards_reduce(shards, 1), RONDO_ERROR_INVALID, "after a clip", sentence);
    if (!result)
        result = expect(rondo_shards_add_unit(shards, NULL, 0), RONDO_ERROR_INVALID,
                        "before the first one is used", sentence);
    rondo_shards_close(shards);
    return result;
}
