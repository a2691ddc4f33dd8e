/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_open.c - from the shape of a model to its table of parameters and its activations.
 *
 * The arena for activations is laid out twice: first with no memory, to learn its size.
 */
#include "train/model/model_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_PARAMETERS = 12, OTHER_PARAMETERS = 6, ALIGNMENT = 16 };

static struct parameter *add(struct model *model, int unit, const char *name, int rows, int columns)
{
    struct parameter *parameter = &model->parameters[model->parameter_count++];

    if (unit > 0 && unit < model->unit_count - 1)
        snprintf(parameter->name, sizeof(parameter->name), "block%d.%s", unit - 1, name);
    else
        snprintf(parameter->name, sizeof(parameter->name), "%s", name);
    parameter->unit = unit;
    parameter->count = (size_t)rows * (size_t)columns;
    parameter->decays = rows > 1;
    model->element_count += parameter->count;
    return parameter;
}

static struct linear add_linear(struct model *model, int unit, const char *name, int in, int out)
{
    struct linear layer = {.in = in, .out = out};
    char text[PARAMETER_NAME / 2];

    snprintf(text, sizeof(text), "%s.weight", name);
    layer.weight = add(model, unit, text, in, out);
    snprintf(text, sizeof(text), "%s.bias", name);
    layer.bias = add(model, unit, text, 1, out);
    return layer;
}

static struct norm add_norm(struct model *model, int unit, const char *name)
{
    struct norm layer = {.width = model->shape.width};
    char text[PARAMETER_NAME / 2];

    snprintf(text, sizeof(text), "%s.gain", name);
    layer.gain = add(model, unit, text, 1, layer.width);
    snprintf(text, sizeof(text), "%s.shift", name);
    layer.shift = add(model, unit, text, 1, layer.width);
    return layer;
}

/* In forward order. */
static void add_layers(struct model *model)
{
    const struct model_shape *shape = &model->shape;
    struct model_parts *parts = model->parts;
    int width = shape->width;
    int last = model->unit_count - 1;

    parts->embedding = (struct embedding){.width = width, .length = shape->length};
    parts->embedding.token = add(model, 0, "token", shape->vocabulary, width);
    parts->embedding.position = add(model, 0, "position", shape->length, width);
    for (int i = 0; i < shape->layers; i++) {
        struct block *block = &parts->blocks[i];

        block->attention = (struct attention){width, shape->heads, shape->length};
        block->norm1 = add_norm(model, i + 1, "norm1");
        block->query = add_linear(model, i + 1, "query", width, 3 * width);
        block->project = add_linear(model, i + 1, "project", width, width);
        block->norm2 = add_norm(model, i + 1, "norm2");
        block->widen = add_linear(model, i + 1, "widen", width, MODEL_WIDER * width);
        block->narrow = add_linear(model, i + 1, "narrow", MODEL_WIDER * width, width);
    }
    parts->norm = add_norm(model, last, "norm");
    parts->head = add_linear(model, last, "head", width, shape->vocabulary);
}

static real *take(real *arena, size_t *used, size_t rows, size_t columns)
{
    real *at = arena ? arena + *used : NULL;

    *used += (rows * columns + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* Counts the elements; with an arena they get their places. */
static size_t lay_out(struct model *model, real *arena)
{
    const struct model_shape *shape = &model->shape;
    struct model_parts *parts = model->parts;
    size_t rows = (size_t)shape->sequences * (size_t)shape->length;
    size_t width = (size_t)shape->width;
    size_t length = (size_t)shape->length;
    size_t used = 0;

    for (int i = 0; i < shape->layers; i++) {
        struct block *block = &parts->blocks[i];

        block->x = take(arena, &used, rows, width);
        block->normed1 = take(arena, &used, rows, width);
        block->statistics1 = take(arena, &used, rows, 2);
        block->qkv = take(arena, &used, rows, 3 * width);
        block->weights = take(arena, &used, rows * (size_t)shape->heads, length);
        block->attended = take(arena, &used, rows, width);
        block->middle = take(arena, &used, rows, width);
        block->normed2 = take(arena, &used, rows, width);
        block->statistics2 = take(arena, &used, rows, 2);
        block->wide = take(arena, &used, rows, MODEL_WIDER * width);
        block->active = take(arena, &used, rows, MODEL_WIDER * width);
    }
    parts->x = take(arena, &used, rows, width);
    parts->normed = take(arena, &used, rows, width);
    parts->statistics = take(arena, &used, rows, 2);
    parts->d_x = take(arena, &used, rows, width);
    parts->d_normed = take(arena, &used, rows, width);
    parts->d_qkv = take(arena, &used, rows, 3 * width);
    parts->d_wide = take(arena, &used, rows, MODEL_WIDER * width);
    parts->d_weights = take(arena, &used, rows, length);
    model->logits = take(arena, &used, rows, (size_t)shape->vocabulary);
    return used;
}

static bool take_memory(struct model *model)
{
    size_t rows = (size_t)model->shape.sequences * (size_t)model->shape.length;
    struct model_parts *parts = model->parts;

    parts->arena = model->with->alloc(lay_out(model, NULL) * sizeof(real));
    parts->tokens = model->with->alloc(rows * sizeof(*parts->tokens));
    parts->targets = model->with->alloc(rows * sizeof(*parts->targets));
    if (!parts->arena || !parts->tokens || !parts->targets)
        return false;
    lay_out(model, parts->arena);
    return true;
}

struct model *model_open(const struct model_shape *shape, const struct arithmetic *with)
{
    struct model *model = calloc(1, sizeof(*model));
    bool ready = false;
    size_t most = BLOCK_PARAMETERS * (size_t)shape->layers + OTHER_PARAMETERS;

    if (!model)
        return NULL;
    model->shape = *shape;
    model->with = with;
    model->unit_count = shape->layers + 2;
    model->parts = calloc(1, sizeof(*model->parts));
    model->parameters = calloc(most, sizeof(*model->parameters));
    if (model->parts)
        model->parts->blocks = calloc((size_t)shape->layers, sizeof(*model->parts->blocks));
    if (model->parts && model->parts->blocks && model->parameters) {
        add_layers(model);
        ready = take_memory(model);
    }
    if (ready)
        return model;
    model_close(model);
    return NULL;
}

void model_close(struct model *model)
{
    if (!model)
        return;
    if (model->parts) {
        model->with->release(model->parts->arena);
        model->with->release(model->parts->tokens);
        model->with->release(model->parts->targets);
        free(model->parts->blocks);
    }
    free(model->parts);
    free(model->parameters);
    free(model);
}

/* A stream of numbers per parameter: what one begins with does not depend on the others. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* From the normal distribution, by Box and Muller. */
static double normal(uint64_t *state)
{
    double a = ((double)(next(state) >> 11) + 1) / 9007199254740993.0;
    double b = (double)(next(state) >> 11) / 9007199254740992.0;

    return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

/*
 * Matrices begin random, gains as 1, the rest as 0. What is added to the residual stream begins
 * smaller the more there is of it, so that the stream does not grow with depth.
 */
void model_initialize(const struct model *model, int index, uint64_t seed, real *value)
{
    const struct parameter *parameter = &model->parameters[index];
    const char *kind = strrchr(parameter->name, '.');
    uint64_t state = (seed + 1) * 0xd1342543de82ef95u + (uint64_t)index * 0xda942042e4dd58b5u;
    bool adds = strstr(parameter->name, "project.") || strstr(parameter->name, "narrow.");
    double deviation =
        0.5 / sqrt(model->shape.width) / (adds ? sqrt(2.0 * model->shape.layers) : 1);
    real constant = kind && !strcmp(kind, ".gain");

    for (size_t i = 0; i < parameter->count; i++)
        value[i] = parameter->decays ? (real)(deviation * normal(&state)) : constant;
}
