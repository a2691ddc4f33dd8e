/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_ddp.c - data parallelism: everything on every rank, gradients averaged in buckets.
 *
 * The backward pass announces each gradient as soon as it is complete. Buckets that are full travel
 * while the pass goes on, so that at its end there is little left to wait for. On a GPU all of it
 * is queued, on two streams; the host waits once a pass.
 */
#include "train/engine.h"

#include "train/cuda/gpu.h"
#include "train/model/optimizer.h"
#include "train/common/say.h"
#include "rondo/bindings.h"

#include <stdlib.h>

enum { BUCKETS = 8, BUCKET_LEAST = 16 << 10 };

struct engine_ddp {
    struct engine base;
    rondo_ddp *ddp;
    optimizer_function optimize;
    float *values, *states[ENGINE_STATES]; /* all parameters one after another */
};

static struct engine_ddp *ddp_of(struct engine *engine)
{
    return (struct engine_ddp *)engine;
}

static rondo_result announce(void *context, int parameter)
{
    struct engine_ddp *me = context;

    return say_ddp(rondo_ddp_gradient_ready(me->ddp, parameter));
}

/* They may move from one step to the next. */
static void find_gradients(struct engine_ddp *me)
{
    struct model *model = me->base.model;

    for (int i = 0; i < model->parameter_count; i++)
        model->parameters[i].gradient = rondo_ddp_gradient(me->ddp, i);
}

/* On a GPU the loss has this weight, where the library divides by ranks alone. */
static real weight_of(const struct engine *engine)
{
    const struct train_options *options = engine->options;

    if (options->elastic.most)
        return engine->weight;
    return options->cuda ? 1 / (real)options->accumulate : 1;
}

static rondo_result pass(struct engine *engine, const struct model_batch *batch, bool last,
                         struct loss *ret_loss)
{
    struct engine_ddp *me = ddp_of(engine);
    const struct model_hooks hooks = {.context = me, .gradient_ready = announce};
    rondo_result result = say_ddp(rondo_ddp_begin(me->ddp, last));

    if (result)
        return result;
    find_gradients(me);
    rondo_trace_begin("forward", 0);
    result = model_forward(engine->model, batch, NULL);
    rondo_trace_end("forward", 0);
    if (result)
        return result;
    rondo_trace_begin("backward", 0);
    model_loss(engine->model, batch, weight_of(engine), ret_loss);
    result = model_backward(engine->model, batch, &hooks);
    rondo_trace_end("backward", 0);
    if (!result)
        result = say_ddp(rondo_ddp_wait(me->ddp));
    return result ? result : engine->model->with->finish();
}

static rondo_result forward(struct engine *engine, const struct model_batch *batch)
{
    return model_forward(engine->model, batch, NULL);
}

static rondo_result update(struct engine *engine, const rondo_adamw *adamw, uint64_t step,
                           double *ret_norm)
{
    struct engine_ddp *me = ddp_of(engine);
    const struct optimizer_step all = {.model = engine->model,
                                       .states = {me->states[0], me->states[1]},
                                       .settings = *adamw,
                                       .number = step,
                                       .clip = engine->options->clip};
    rondo_result result = me->optimize(&all, ret_norm);

    return result ? result : say_ddp(rondo_ddp_zero_gradients(me->ddp));
}

static float *array_of(struct engine *engine, int parameter, int state)
{
    struct engine_ddp *me = ddp_of(engine);
    const struct parameter *at = &engine->model->parameters[parameter];

    return state == ENGINE_VALUE ? at->value : me->states[state] + (at->value - me->values);
}

static rondo_result export_array(struct engine *engine, int parameter, int state, float *ret_values)
{
    return engine->model->with->read(ret_values, array_of(engine, parameter, state),
                                     engine->model->parameters[parameter].count *
                                         sizeof(*ret_values));
}

static rondo_result import_array(struct engine *engine, int parameter, int state,
                                 const float *values)
{
    engine->model->with->write(array_of(engine, parameter, state), values,
                               engine->model->parameters[parameter].count * sizeof(*values));
    return engine->model->with->finish();
}

static void memory(struct engine *engine, struct engine_memory *ret_memory)
{
    size_t bytes = engine->model->element_count * sizeof(float);

    *ret_memory =
        (struct engine_memory){bytes, bytes, ENGINE_STATES * bytes, (2 + ENGINE_STATES) * bytes};
}

static void times(struct engine *engine, struct engine_times *ret_times)
{
    rondo_ddp_statistics statistics = {0};

    rondo_ddp_statistics_get(ddp_of(engine)->ddp, &statistics);
    *ret_times =
        (struct engine_times){statistics.exposed, statistics.communication, statistics.bytes};
}

static rondo_result lateness(struct engine *engine, rondo_ddp_lateness *ret)
{
    return say_ddp(rondo_ddp_lateness_get(ddp_of(engine)->ddp, ret));
}

static void close_ddp(struct engine *engine)
{
    struct engine_ddp *me = ddp_of(engine);
    const struct arithmetic *with = engine->model->with;

    rondo_ddp_close(me->ddp);
    with->release(me->values);
    for (int i = 0; i < ENGINE_STATES; i++)
        with->release(me->states[i]);
    free(me);
}

rondo_result engine_ddp_move(struct engine *engine, rondo_comm *comm)
{
    engine->comm = comm;
    return say_ddp(rondo_ddp_move(ddp_of(engine)->ddp, comm));
}

rondo_result engine_ddp_share(struct engine *engine, const rondo_ddp_tensor *more)
{
    struct engine_ddp *me = ddp_of(engine);
    rondo_ddp_tensor all[ENGINE_STATES + 2];

    for (int i = ENGINE_VALUE; i < ENGINE_STATES; i++)
        all[i + 1] = (rondo_ddp_tensor){.data = i == ENGINE_VALUE ? me->values : me->states[i],
                                        .count = engine->model->element_count,
                                        .type = RONDO_FLOAT32};
    all[ENGINE_STATES + 1] = *more;
    return say_ddp(rondo_ddp_share(me->ddp, all, ENGINE_STATES + 2));
}

void engine_ddp_revoke(struct engine *engine)
{
    if (engine)
        rondo_ddp_revoke(ddp_of(engine)->ddp);
}

static const struct engine_ops ops = {pass,   forward, update,   export_array, import_array,
                                      memory, times,   lateness, close_ddp};

/* Several buckets, so that the first ones travel early, but none so small that it is all latency.
 */
static rondo_ddp_config config_of(const struct train_options *options, size_t model_bytes)
{
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    size_t bytes = model_bytes / BUCKETS;

    if (bytes < BUCKET_LEAST)
        bytes = BUCKET_LEAST;
    if (bytes < config.bucket_bytes)
        config.bucket_bytes = bytes;
    if (options->bucket_bytes)
        config.bucket_bytes = options->bucket_bytes;
    if (config.first_bucket_bytes > config.bucket_bytes)
        config.first_bucket_bytes = config.bucket_bytes;
    config.average = RONDO_DDP_BY_PASSES;
    config.accumulation = options->deterministic ? RONDO_DDP_TREE : RONDO_DDP_ADD;
    config.compression = options->precision;
    config.check_nan = 1;
    if (options->elastic.most) /* passes may weigh nothing */
        config.average = RONDO_DDP_SUM;
    if (options->cuda) { /* what is not finite is seen in the norm */
        config.average = RONDO_DDP_BY_RANKS;
        config.check_nan = 0;
        gpu_exchange(&config.device);
    }
    return config;
}

static rondo_result initialize(const struct model *model, int index, uint64_t seed)
{
    const struct parameter *parameter = &model->parameters[index];
    size_t bytes = parameter->count * sizeof(*parameter->value);
    float *values = malloc(bytes);
    rondo_result result;

    if (!values)
        return say_memory();
    model_initialize(model, index, seed, values);
    model->with->write(parameter->value, values, bytes);
    result = model->with->finish();
    free(values);
    return result;
}

static rondo_result open_ddp(struct engine_ddp *me, const struct train_options *options)
{
    struct model *model = me->base.model;
    rondo_ddp_config config = config_of(options, model->element_count * sizeof(float));
    rondo_ddp_tensor *tensors = calloc((size_t)model->parameter_count, sizeof(*tensors));
    rondo_ddp_model all = {.parameters = tensors, .parameter_count = model->parameter_count};
    float *value = me->values;
    rondo_result result = tensors ? RONDO_OK : say_memory();

    for (int i = 0; !result && i < model->parameter_count; i++) {
        struct parameter *parameter = &model->parameters[i];

        parameter->value = value;
        result = initialize(model, i, options->seed);
        tensors[i] = (rondo_ddp_tensor){.name = parameter->name,
                                        .data = value,
                                        .count = parameter->count,
                                        .type = RONDO_FLOAT32};
        value += parameter->count;
    }
    if (!result)
        result = say_ddp(rondo_ddp_open(me->base.comm, &all, &config, &me->ddp));
    free(tensors);
    return result;
}

rondo_result engine_ddp_open(const struct train_options *options, struct model *model,
                             rondo_comm *comm, struct engine **ret_engine)
{
    struct engine_ddp *me = calloc(1, sizeof(*me));
    rondo_result result;
    bool ready;

    if (!me)
        return say_memory();
    me->base = (struct engine){&ops, model, comm, options, 1};
    me->optimize = options->cuda ? gpu_optimize : optimizer_host;
    me->values = model->with->alloc(model->element_count * sizeof(float));
    ready = me->values != NULL;
    for (int i = 0; i < ENGINE_STATES; i++) {
        me->states[i] = model->with->alloc(model->element_count * sizeof(float));
        ready = ready && me->states[i];
    }
    result = ready ? open_ddp(me, options) : say_memory();
    if (result)
        close_ddp(&me->base);
    else
        *ret_engine = &me->base;
    return result;
}
