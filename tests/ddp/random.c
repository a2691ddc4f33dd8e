/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.c - random models, settings and orders: the sum is right whatever they are.
 *
 * All ranks draw the same model and settings from the seed, and each its own order of gradients
 * and, with find_unused, its own choice of parameters. Gradients are small whole numbers, so that
 * sums are exact.
 */
#include "bodies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 24, ELEMENTS = 900, CASES = 40, STEPS = 3 };

struct draw {
    uint64_t seed, drawn;
};

static int draw(struct draw *d, int below)
{
    return (int)(world_hash(d->seed, d->drawn++) % (uint64_t)below);
}

struct game {
    rondo_comm *comm;
    rondo_ddp *ddp;
    rondo_ddp_config config;
    int number, rank, size, parameters, passes;
    rondo_ddp_tensor tensors[MOST];
    char names[MOST][16];
    double data[ELEMENTS], own[MOST][ELEMENTS];
    char *sentence;
};

static void draw_model(struct game *g, struct draw *d)
{
    static const rondo_type types[] = {RONDO_FLOAT32, RONDO_FLOAT32, RONDO_FLOAT64, RONDO_FLOAT16,
                                       RONDO_BFLOAT16};
    int same_type = draw(d, 2);

    g->parameters = draw(d, MOST + 1);
    for (int p = 0; p < g->parameters; p++) {
        snprintf(g->names[p], sizeof(g->names[p]), "p%d", p);
        g->tensors[p] = (rondo_ddp_tensor){
            .name = g->names[p],
            .data = g->data,
            .gradient = draw(d, 3) ? NULL : g->own[p],
            .count = (size_t)draw(d, draw(d, 2) ? 20 : ELEMENTS),
            .type = same_type ? RONDO_FLOAT32 : types[draw(d, 5)],
            .frozen = draw(d, 6) == 0,
        };
    }
}

static void draw_settings(struct game *g, struct draw *d)
{
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;

    config.bucket_bytes = (size_t)draw(d, 5000);
    config.first_bucket_bytes = (size_t)draw(d, 1000);
    config.average = RONDO_DDP_SUM;
    config.find_unused = draw(d, 2);
    config.check_nan = draw(d, 2);
    config.rebuild = draw(d, 3) > 0;
    config.compression = (rondo_ddp_compression)(draw(d, 2) ? draw(d, 3) : 0);
    config.join = draw(d, 2) ? RONDO_DDP_JOIN_BY_SIZE : RONDO_DDP_NO_JOIN;
    g->passes = 1 + draw(d, 3);
    g->config = config;
}

/* A parameter that is left out in a pass; the first rank always uses all in the last one. */
static bool is_used(const struct game *g, int rank, int step, int pass, int p)
{
    uint64_t key = (uint64_t)(((g->number * 100 + rank) * 10 + step) * 10 + pass);

    return !g->config.find_unused || (rank == 0 && pass == g->passes - 1) ||
           world_hash(key, (uint64_t)p) % 3;
}

static double gradient_of(int rank, int step, int pass, int p, size_t i)
{
    return (double)((rank + step + pass + p + (int)i) % 5) - 2;
}

static rondo_result announce(struct game *g, int step, int pass, int p)
{
    const rondo_ddp_tensor *t = &g->tensors[p];
    char *gradient = rondo_ddp_gradient(g->ddp, p);
    size_t bytes = rondo_type_size(t->type);

    for (size_t i = 0; i < t->count; i++)
        world_store(t->type, gradient + i * bytes,
                    world_load(t->type, gradient + i * bytes) +
                        gradient_of(g->rank, step, pass, p, i));
    return rondo_ddp_gradient_ready(g->ddp, p);
}

static rondo_result run_pass(struct game *g, int step, int pass)
{
    struct draw order = {(uint64_t)(g->number * 1000 + g->rank * 100 + step * 10 + pass), 0};
    bool done[MOST] = {false};
    rondo_result result = rondo_ddp_begin(g->ddp, pass == g->passes - 1);

    for (int left = g->parameters; left > 0 && !result; left--) {
        int p = draw(&order, g->parameters);

        while (done[p])
            p = (p + 1) % g->parameters;
        done[p] = true;
        if (!g->tensors[p].frozen && is_used(g, g->rank, step, pass, p))
            result = announce(g, step, pass, p);
    }
    return result ? result : rondo_ddp_wait(g->ddp);
}

static double wanted(const struct game *g, int step, int p, size_t i)
{
    double sum = 0;

    for (int rank = 0; rank < g->size; rank++)
        for (int pass = 0; pass < g->passes; pass++)
            if (is_used(g, rank, step, pass, p))
                sum += gradient_of(rank, step, pass, p, i);
    return sum;
}

static rondo_result check(const struct game *g, int step)
{
    for (int p = 0; p < g->parameters; p++) {
        const rondo_ddp_tensor *t = &g->tensors[p];
        const char *gradient = rondo_ddp_gradient(g->ddp, p);

        for (size_t i = 0; i < t->count && !t->frozen; i++) {
            double got = world_load(t->type, gradient + i * rondo_type_size(t->type));

            if (got != wanted(g, step, p, i))
                return world_say(g->sentence, RONDO_ERROR_INTERNAL,
                                 "case %d, step %d: element %zu of '%s' is %g, not %g", g->number,
                                 step, i, t->name, got, wanted(g, step, p, i));
        }
    }
    return RONDO_OK;
}

static rondo_result play(struct game *g)
{
    struct draw d = {(uint64_t)g->number + 7, 0};
    rondo_ddp_model model = {g->tensors, 0, NULL, 0};
    rondo_result result;

    draw_model(g, &d);
    draw_settings(g, &d);
    model.parameter_count = g->parameters;
    result = rondo_ddp_open(g->comm, &model, &g->config, &g->ddp);
    for (int step = 0; step < STEPS && !result; step++) {
        result = rondo_ddp_zero_gradients(g->ddp);
        for (int pass = 0; pass < g->passes && !result; pass++)
            result = run_pass(g, step, pass);
        if (!result)
            result = check(g, step);
    }
    if (!result && g->config.join)
        result = rondo_ddp_join(g->ddp, NULL, NULL);
    if (result)
        world_say(g->sentence, result, "case %d: %s", g->number, rondo_ddp_last_error());
    rondo_ddp_close(g->ddp);
    g->ddp = NULL;
    return result;
}

rondo_result random_models_and_orders(rondo_comm *comm, void *unused, char *sentence)
{
    struct game *g = malloc(sizeof(*g));
    rondo_result result = RONDO_OK;

    if (!g)
        return RONDO_ERROR_MEMORY;
    for (int number = 0; number < CASES && !result; number++) {
        memset(g, 0, sizeof(*g));
        g->comm = comm;
        g->number = number;
        g->rank = rondo_comm_rank(comm);
        g->size = rondo_comm_size(comm);
        g->sentence = sentence;
        result = play(g);
    }
    free(g);
    return result;
}
