/* SPDX-License-Identifier: BSD-3-Clause */
/* toy.c - a model without mathematics, see toy.h. */
#include "toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TOY_PARAMETERS] = {
    "embed.weight", "up.weight", "empty", "up.bias", "table", "norm", "head.weight"};
static const size_t counts[TOY_PARAMETERS] = {300, 100, 0, 17, 40, 1, 64};

double toy_value(int rank, int parameter, size_t i)
{
    return rank * 100 + parameter * 10 + (double)(i % 7);
}

double toy_gradient(int rank, int pass, int parameter, size_t i)
{
    return (rank + 1) * (double)(i % 3 + 1) + parameter - 2 * pass;
}

static rondo_type type_of(int parameter)
{
    static const rondo_type types[TOY_PARAMETERS] = {RONDO_FLOAT32, RONDO_BFLOAT16, RONDO_FLOAT32,
                                                     RONDO_FLOAT16, RONDO_FLOAT32,  RONDO_FLOAT64,
                                                     RONDO_BFLOAT16};

    return types[parameter];
}

struct toy *toy_new(rondo_comm *comm, bool mixed_types, char *sentence)
{
    struct toy *toy = calloc(1, sizeof(*toy));

    if (!toy)
        abort();
    toy->comm = comm;
    toy->rank = rondo_comm_rank(comm);
    toy->size = rondo_comm_size(comm);
    toy->sentence = sentence;
    for (int p = 0; p < TOY_PARAMETERS; p++) {
        rondo_ddp_tensor *t = &toy->parameters[p];

        *t = (rondo_ddp_tensor){
            .name = names[p],
            .data = toy->data[p],
            .gradient = p % 2 ? toy->own[p] : NULL,
            .count = counts[p],
            .type = mixed_types ? type_of(p) : RONDO_FLOAT32,
            .frozen = p == TOY_FROZEN,
        };
        for (size_t i = 0; i < t->count; i++)
            world_store(t->type, (char *)t->data + i * rondo_type_size(t->type),
                        toy_value(toy->rank, p, i));
    }
    for (int b = 0; b < TOY_BUFFERS; b++) {
        toy->buffers[b] = (rondo_ddp_tensor){
            .name = "state", .data = toy->buffer[b], .count = 20, .type = RONDO_INT32};
        for (int i = 0; i < 20; i++)
            toy->buffer[b][i] = toy->rank * 1000 + b * 100 + i;
    }
    toy->model = (rondo_ddp_model){toy->parameters, TOY_PARAMETERS, toy->buffers, TOY_BUFFERS};
    return toy;
}

rondo_ddp_config toy_config(void)
{
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;

    config.bucket_bytes = 600;
    config.first_bucket_bytes = 100;
    config.average = RONDO_DDP_SUM;
    return config;
}

rondo_result toy_open(struct toy *toy, const rondo_ddp_config *config)
{
    return toy_say(toy, rondo_ddp_open(toy->comm, &toy->model, config, &toy->ddp), "open");
}

void toy_free(struct toy *toy)
{
    rondo_ddp_close(toy->ddp);
    free(toy);
}

rondo_result toy_announce(struct toy *toy, int parameter, int pass)
{
    const rondo_ddp_tensor *t = &toy->parameters[parameter];
    char *gradient = rondo_ddp_gradient(toy->ddp, parameter);
    size_t bytes = rondo_type_size(t->type);

    for (size_t i = 0; i < t->count; i++) {
        double before = world_load(t->type, gradient + i * bytes);

        world_store(t->type, gradient + i * bytes,
                    before + toy_gradient(toy->rank, pass, parameter, i));
    }
    return toy_say(toy, rondo_ddp_gradient_ready(toy->ddp, parameter), "announce");
}

rondo_result toy_pass(struct toy *toy, int pass, int exchange, bool backwards)
{
    rondo_result result = rondo_ddp_begin(toy->ddp, exchange);

    for (int i = 0; i < TOY_PARAMETERS && !result; i++) {
        int p = backwards ? TOY_PARAMETERS - 1 - i : i;

        if (p != TOY_FROZEN)
            result = toy_announce(toy, p, pass);
    }
    if (!result)
        result = rondo_ddp_wait(toy->ddp);
    return toy_say(toy, result, "pass");
}

rondo_result toy_check(struct toy *toy, toy_wanted wanted, const void *context)
{
    for (int p = 0; p < TOY_PARAMETERS; p++) {
        const rondo_ddp_tensor *t = &toy->parameters[p];
        const char *gradient = rondo_ddp_gradient(toy->ddp, p);

        for (size_t i = 0; i < t->count && p != TOY_FROZEN; i++) {
            double got = world_load(t->type, gradient + i * rondo_type_size(t->type));
            double want = wanted(toy, context, p, i);

            if (!(fabs(got - want) <= 1e-6 * fabs(want)))
                return world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                                 "element %zu of the gradient of '%s' is %.9g, not %.9g", i,
                                 t->name, got, want);
        }
    }
    return RONDO_OK;
}

rondo_result toy_say(struct toy *toy, rondo_result result, const char *what)
{
    if (result)
        world_say(toy->sentence, result, "%s: %s", what, rondo_ddp_last_error());
    return result;
}

rondo_result toy_expect(struct toy *toy, rondo_result got, rondo_result wanted, const char *word,
                        const char *other_word)
{
    const char *last = rondo_ddp_last_error();

    if (got != wanted || !strstr(last, word) || !strstr(last, other_word))
        return world_say(toy->sentence, RONDO_ERROR_INTERNAL,
                         "rank %d got '%s' (%s), not '%s' with '%s' and '%s'", toy->rank,
                         rondo_result_string(got), last, rondo_result_string(wanted), word,
                         other_word);
    toy->sentence[0] = 0;
    return RONDO_OK;
}
