/* SPDX-License-Identifier: BSD-3-Clause */
/* sharded_wrong.c - steps that are not like others: with mistakes, with gradients missing, left
 * out. */
#include "sharded.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void sgd(void *context, const rondo_update *work)
{
    static const rondo_sgd settings = {.rate = 0.5f};

    rondo_sgd_step(&settings, work->count, work->values, work->gradients, NULL);
}

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

/* A unit that goes into no memory on rank 1; then one that does go. */
rondo_result sharded_no_memory(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_shards_config config = {
        .struct_size = sizeof(config), .level = *(int *)argument, .states = 1};
    rondo_parameter_spec spec = {"w", rondo_comm_rank(comm) == 1 ? (size_t)1 << 58 : 3, NULL};
    rondo_shards *shards = NULL;
    rondo_result result = rondo_shards_open(&config, comm, &shards);

    if (!result)
        result = expect(rondo_shards_add_unit(shards, &spec, 1), RONDO_ERROR_MEMORY,
                        "Rank 1: ", sentence);
    spec.count = 3;
    if (!result)
        result = rondo_shards_add_unit(shards, &spec, 1);
    if (!result)
        result = rondo_shards_gather(shards, 0);
    rondo_shards_close(shards);
    return result;
}

static rondo_result refuse_nulls(rondo_shards *shards, char *sentence)
{
    const struct {
        rondo_result result;
        const char *function;
    } calls[] = {{rondo_shards_clip(shards, 1, NULL), "rondo_shards_clip"},
                 {rondo_shards_parameter(shards, 0, 0, NULL), "rondo_shards_parameter"},
                 {rondo_shards_gradient(shards, 0, 0, NULL), "rondo_shards_gradient"},
                 {rondo_shards_export(shards, 0, 0, -1, NULL), "rondo_shards_export"},
                 {rondo_shards_import(shards, 0, 0, -1, NULL), "rondo_shards_import"}};

    if (!strstr(rondo_ddp_last_error(), "pointer to values is NULL"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%s", rondo_ddp_last_error());
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].result != RONDO_ERROR_INVALID)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%s: %s", calls[i].function,
                             rondo_result_string(calls[i].result));
    return RONDO_OK;
}

rondo_result sharded_nulls(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_shards_config config = {.struct_size = sizeof(config), .level = 3};
    rondo_parameter_spec spec = {"w", 3, NULL};
    rondo_shards *shards = NULL;
    rondo_result result = expect(rondo_shards_open(&config, comm, NULL), RONDO_ERROR_INVALID,
                                 "no place for the rondo_shards", sentence);

    config.average = (rondo_ddp_average)7;
    if (!result)
        result = expect(rondo_shards_open(&config, comm, &shards), RONDO_ERROR_INVALID,
                        "no average 7", sentence);
    config.average = RONDO_DDP_BY_RANKS;
    if (!result)
        result = rondo_shards_open(&config, comm, &shards);
    if (!result)
        result = rondo_shards_add_unit(shards, &spec, 1);
    if (!result)
        result = refuse_nulls(shards, sentence);
    rondo_shards_close(shards);
    return result;
}

/* The last rank leaves in its second step; the others must hear of it and get away. */
rondo_result sharded_death(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded job = {.level = *(int *)argument, .passes = 1};
    rondo_shards *shards = NULL;
    double norm;
    rondo_result result = sharded_open(comm, &job, &shards);

    for (uint64_t step = 1; step <= 3 && !result; step++) {
        if (step == 2 && rondo_comm_rank(comm) == rondo_comm_size(comm) - 1)
            raise(SIGKILL);
        result = sharded_step(comm, shards, &job, step, &norm);
    }
    if (result)
        world_say(sentence, result, "%s", rondo_ddp_last_error());
    rondo_shards_close(shards);
    return result;
}

rondo_result sharded_nan(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded job = {.level = *(int *)argument, .passes = 1};
    rondo_shards *shards = NULL;
    float *gradient;
    double norm;
    rondo_result result = sharded_open(comm, &job, &shards);

    if (!result)
        result = rondo_shards_gradient(shards, 3, 1, &gradient);
    if (!result && rondo_comm_rank(comm) == 1)
        gradient[4] = -INFINITY;
    if (!result)
        result = rondo_shards_reduce(shards, 3);
    if (!result)
        result = expect(rondo_shards_step(shards, sgd, NULL), RONDO_ERROR_INVALID,
                        "Rank 1 has a gradient that is no number: element 4 of 'bias'", sentence);
    if (!result) /* and it goes on */
        result = sharded_step(comm, shards, &job, 1, &norm);
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
    rondo_result result = sharded_open(comm, &job, &shards);

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

/* ---- Gradients that are missing -------------------------------------------------------------- */

/* Fails unless every element of a parameter differs from its start by that much. */
static rondo_result expect_change(rondo_shards *shards, int p, float change, char *sentence)
{
    const struct sharded_parameter *parameter = &sharded_model[p];
    float values[SHARDED_TOTAL];
    rondo_result result =
        rondo_shards_export(shards, parameter->unit, parameter->index, -1, values);

    for (size_t i = 0; i < parameter->count && !result; i++)
        if (values[i] != sharded_start(p, i) + change)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "element %zu of %s is %g, not %g", i,
                               parameter->name, (double)values[i],
                               (double)(sharded_start(p, i) + change));
    return result;
}

/* Rank 0 alone has a gradient of "bias", 4 in each element; the other units have none. */
static rondo_result give_bias(rondo_comm *comm, rondo_shards *shards)
{
    float *gradient;
    rondo_result result = RONDO_OK;

    if (rondo_comm_rank(comm) == 0) {
        result = rondo_shards_gradient(shards, 3, 1, &gradient);
        for (size_t i = 0; i < 5 && !result; i++)
            gradient[i] += 4;
    }
    return result ? result : rondo_shards_reduce(shards, 3);
}

/* A step that is left out in the midst of a pass. */
static rondo_result break_off(rondo_shards *shards)
{
    float *gradient;
    rondo_result result = rondo_shards_gradient(shards, 3, 1, &gradient);

    if (result)
        return result;
    gradient[0] = 1000;
    return rondo_shards_step(shards, NULL, NULL);
}

rondo_result sharded_partial(rondo_comm *comm, void *argument, char *sentence)
{
    struct sharded job = {.level = *(int *)argument};
    rondo_shards *shards = NULL;
    float step = -0.5f * 4 / (float)rondo_comm_size(comm);
    double norm = 0;
    rondo_result result = sharded_open(comm, &job, &shards);

    if (!result)
        result = break_off(shards);
    if (!result && !(result = give_bias(comm, shards)) &&
        !(result = rondo_shards_clip(shards, 0, &norm)))
        result = rondo_shards_step(shards, NULL, NULL); /* left out: no change */
    if (!result)
        result = expect_change(shards, 6, 0, sentence);
    if (!result && !(result = give_bias(comm, shards)))
        result = rondo_shards_step(shards, sgd, NULL);
    if (!result)
        result = expect_change(shards, 6, step, sentence);
    for (int p = 0; p < 6 && !result; p++)
        result = expect_change(shards, p, 0, sentence);
    if (!result && norm != sqrt(5) * 4 / rondo_comm_size(comm))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the norm is %g", norm);
    rondo_shards_close(shards);
    return result;
}
