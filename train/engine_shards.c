/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_shards.c - ranks divide the optimizer's state, the gradients, or all of it.
 *
 * A unit (the embeddings, a block, the head) is gathered before its layers compute, while the one
 * after it is already on its way, and let go after. In the backward pass its gradient is then
 * summed up over ranks into shards, and each rank steps with its own.
 */
#include "train/engine.h"

#include "train/clock.h"
#include "train/common/say.h"
#include "rondo/bindings.h"

#include <stdlib.h>

struct engine_shards {
    struct engine base;
    rondo_shards *shards;
    int *first;     /* parameter of each unit, in the model's table */
    double exposed; /* seconds in calls that wait */
    const rondo_adamw *adamw;
    uint64_t step;
};

static struct engine_shards *shards_of(struct engine *engine)
{
    return (struct engine_shards *)engine;
}

static rondo_result gather(struct engine_shards *me, int unit)
{
    double start = clock_now();
    rondo_result result = rondo_shards_gather(me->shards, unit);

    me->exposed += clock_now() - start;
    return result;
}

/* Let the model see a unit that is here. */
static rondo_result show(struct engine_shards *me, int unit, bool backward)
{
    struct model *model = me->base.model;
    rondo_result result = RONDO_OK;

    for (int i = me->first[unit]; !result && i < me->first[unit + 1]; i++) {
        struct parameter *parameter = &model->parameters[i];
        int number = i - me->first[unit];
        const float *values;

        result = rondo_shards_parameter(me->shards, unit, number, &values);
        if (!result)
            parameter->value = (float *)(uintptr_t)values; /* layers only read it */
        if (!result && backward)
            result = rondo_shards_gradient(me->shards, unit, number, &parameter->gradient);
    }
    return result;
}

static rondo_result before_unit(void *context, int unit, bool backward)
{
    struct engine_shards *me = context;
    int next = backward ? unit - 1 : unit + 1;
    rondo_result result = gather(me, unit);

    if (!result && next >= 0 && next < me->base.model->unit_count)
        result = rondo_shards_prefetch(me->shards, next);
    return say_ddp(result ? result : show(me, unit, backward));
}

static rondo_result after_unit(void *context, int unit, bool backward)
{
    struct engine_shards *me = context;
    rondo_result result = backward ? rondo_shards_reduce(me->shards, unit) : RONDO_OK;

    return say_ddp(result ? result : rondo_shards_release(me->shards, unit));
}

static rondo_result pass(struct engine *engine, const struct model_batch *batch, bool last,
                         struct loss *ret_loss)
{
    const struct model_hooks hooks = {engine, before_unit, after_unit, NULL};
    rondo_result result;

    rondo_trace_begin("forward", 0);
    result = model_forward(engine->model, batch, &hooks);
    rondo_trace_end("forward", 0);
    if (result)
        return result;
    rondo_trace_begin("backward", 0);
    model_loss(engine->model, batch, 1 / (real)engine->options->accumulate, ret_loss);
    result = model_backward(engine->model, batch, &hooks);
    rondo_trace_end("backward", 0);
    return result;
}

static rondo_result forward(struct engine *engine, const struct model_batch *batch)
{
    const struct model_hooks hooks = {engine, before_unit, after_unit, NULL};

    return model_forward(engine->model, batch, &hooks);
}

static void update_piece(void *context, const rondo_update *update)
{
    struct engine_shards *me = context;
    int parameter = me->first[update->unit] + update->parameter;
    rondo_adamw settings = *me->adamw;

    if (!me->base.model->parameters[parameter].decays)
        settings.decay = 0;
    rondo_adamw_step(&settings, me->step, update->count, update->values, update->gradients,
                     update->states[0], update->states[1]);
}

static rondo_result update(struct engine *engine, const rondo_adamw *adamw, uint64_t step,
                           double *ret_norm)
{
    struct engine_shards *me = shards_of(engine);
    double start = clock_now();
    rondo_result result = rondo_shards_clip(me->shards, engine->options->clip, ret_norm);

    me->exposed += clock_now() - start;
    if (result)
        return say_ddp(result);
    me->adamw = adamw;
    me->step = step;
    return say_ddp(rondo_shards_step(me->shards, update_piece, me));
}

static int unit_of(const struct engine *engine, int parameter)
{
    return engine->model->parameters[parameter].unit;
}

static rondo_result export_array(struct engine *engine, int parameter, int state, float *ret_values)
{
    struct engine_shards *me = shards_of(engine);
    int unit = unit_of(engine, parameter);

    return say_ddp(
        rondo_shards_export(me->shards, unit, parameter - me->first[unit], state, ret_values));
}

static rondo_result import_array(struct engine *engine, int parameter, int state,
                                 const float *values)
{
    struct engine_shards *me = shards_of(engine);
    int unit = unit_of(engine, parameter);

    return say_ddp(
        rondo_shards_import(me->shards, unit, parameter - me->first[unit], state, values));
}

static void memory(struct engine *engine, struct engine_memory *ret_memory)
{
    rondo_shards_memory used = {0};

    rondo_shards_memory_used(shards_of(engine)->shards, &used);
    *ret_memory =
        (struct engine_memory){used.parameters, used.gradients, used.states, used.without};
}

static void times(struct engine *engine, struct engine_times *ret_times)
{
    *ret_times = (struct engine_times){.exposed = shards_of(engine)->exposed, .communication = -1};
}

static void close_shards(struct engine *engine)
{
    struct engine_shards *me = shards_of(engine);

    rondo_shards_close(me->shards);
    free(me->first);
    free(me);
}

static const struct engine_ops ops = {pass,   forward, update, export_array, import_array,
                                      memory, times,   NULL,   close_shards};

static rondo_result add_unit(struct engine_shards *me, int unit)
{
    const struct model *model = me->base.model;
    int count = me->first[unit + 1] - me->first[unit];
    rondo_parameter_spec *specs = calloc((size_t)count, sizeof(*specs));
    float *values[16] = {NULL};
    rondo_result result = specs ? RONDO_OK : say_memory();

    for (int i = 0; !result && i < count; i++) {
        const struct parameter *parameter = &model->parameters[me->first[unit] + i];

        values[i] = malloc(parameter->count * sizeof(float));
        if (!values[i]) {
            result = say_memory();
            break;
        }
        model_initialize(model, me->first[unit] + i, me->base.options->seed, values[i]);
        specs[i] = (rondo_parameter_spec){parameter->name, parameter->count, values[i]};
    }
    if (!result)
        result = say_ddp(rondo_shards_add_unit(me->shards, specs, (size_t)count));
    for (int i = 0; i < count; i++)
        free(values[i]);
    free(specs);
    return result;
}

static rondo_result open_shards(struct engine_shards *me, const struct train_options *options)
{
    rondo_shards_config config = {
        .struct_size = sizeof(config), .level = options->shard, .states = ENGINE_STATES};
    struct model *model = me->base.model;
    rondo_result result = say_ddp(rondo_shards_open(&config, me->base.comm, &me->shards));

    for (int i = model->parameter_count - 1; i >= 0; i--)
        me->first[model->parameters[i].unit] = i;
    me->first[model->unit_count] = model->parameter_count;
    for (int unit = 0; !result && unit < model->unit_count; unit++)
        result = add_unit(me, unit);
    return result;
}

rondo_result engine_shards_open(const struct train_options *options, struct model *model,
                                rondo_comm *comm, struct engine **ret_engine)
{
    struct engine_shards *me = calloc(1, sizeof(*me));
    rondo_result result;

    if (!me)
        return say_memory();
    me->base = (struct engine){&ops, model, comm, options, 1};
    me->first = calloc((size_t)model->unit_count + 1, sizeof(*me->first));
    result = me->first ? open_shards(me, options) : say_memory();
    if (result)
        close_shards(&me->base);
    else
        *ret_engine = &me->base;
    return result;
}
