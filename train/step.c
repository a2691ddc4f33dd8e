/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.c - one step: gradients of all micro-batches, the update, the mean loss.
 *
 * Micro-batch m of M is computed by rank m / passes. With --elastic M stays while ranks come and
 * go, so the last passes may have none left: they compute with any, and it weighs nothing. There
 * the update comes last, after ranks have agreed that the step counts.
 */
#include "train/trainer.h"

#include "train/clock.h"
#include "train/common/say.h"
#include "rondo/bindings.h"

#include <math.h>
#include <string.h>

static const float beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f;
static const double last_rate = 0.02; /* of the schedule, as a part of the peak */

static rondo_adamw adamw_of(const struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    const rondo_schedule schedule = {.rate = options->rate * trainer->rate_factor,
                                     .floor = last_rate * options->rate * trainer->rate_factor,
                                     .warmup = options->warmup,
                                     .steps = options->steps};

    return (rondo_adamw){.rate = (float)rondo_schedule_rate(&schedule, trainer->progress),
                         .beta1 = beta1,
                         .beta2 = beta2,
                         .epsilon = epsilon,
                         .decay = (float)options->decay};
}

/*
 * The mean over all micro-batches of the step: each rank puts its own into a table of zeros, and
 * the table is summed up from its beginning. So its bits do not depend on who computed what.
 */
static rondo_result mean_loss(struct trainer *trainer, double *ret_loss)
{
    size_t count = (size_t)trainer->micro_batches;
    double start = clock_now();
    double sum = 0;
    rondo_result result = rondo_all_reduce(trainer->losses, trainer->losses, count, RONDO_FLOAT64,
                                           RONDO_SUM, trainer->comm, NULL);

    trainer->time.waiting += clock_now() - start;
    for (size_t i = 0; i < count; i++)
        sum += trainer->losses[i];
    *ret_loss = sum / (double)count;
    return say_comm(result, trainer->comm);
}

/* The batch of a pass; returns its number m, or -1 if it is to weigh nothing. */
static int next_batch(struct trainer *trainer, int pass, struct model_batch *ret_batch)
{
    int number = trainer->rank * trainer->passes + pass;
    uint64_t first = trainer->taken + (uint64_t)number * (uint64_t)trainer->options->batch;

    if (!trainer->options->elastic.most) {
        loader_next(trainer->loader, pass, ret_batch);
        return number;
    }
    if (number >= trainer->micro_batches) {
        loader_at(trainer->loader, trainer->taken, ret_batch, NULL);
        trainer->engine->weight = 0;
        return -1;
    }
    loader_at(trainer->loader, first, ret_batch, &trainer->step_ledger);
    trainer->engine->weight = 1 / (real)trainer->micro_batches;
    return number;
}

static rondo_result passes(struct trainer *trainer)
{
    int count = trainer->passes;
    rondo_result result = RONDO_OK;

    memset(trainer->losses, 0, (size_t)trainer->micro_batches * sizeof(*trainer->losses));
    trainer->step_ledger = (struct ledger){0};
    for (int pass = 0; !result && pass < count; pass++) {
        struct model_batch batch;
        struct loss loss = {0};
        int number = next_batch(trainer, pass, &batch);

        result = trainer->engine->ops->pass(trainer->engine, &batch, pass + 1 == count, &loss);
        if (number >= 0)
            trainer->losses[number] = loss.sum / (double)loss.counted;
    }
    return result;
}

/* Notes the time that this step took; `before` is as it began. */
static void take_time(struct trainer *trainer, const struct step *step)
{
    struct curve_point *point = &trainer->point;
    size_t sequences = (size_t)trainer->micro_batches * (size_t)trainer->options->batch;
    size_t tokens = sequences * (size_t)trainer->corpus->length;
    struct engine_times after;
    double exposed, communication;

    trainer->engine->ops->times(trainer->engine, &after);
    exposed = after.exposed - step->before.exposed;
    communication = after.communication - step->before.communication;
    point->seconds = clock_now() - step->start;
    point->tokens_per_s = (double)tokens / point->seconds;
    trainer->time.waiting += exposed;
    point->computing = 1 - (trainer->time.waiting - step->waited) / point->seconds;
    point->hidden = communication > 0 ? fmax(0, 1 - exposed / communication) : -1;
    trainer->time.training += point->seconds;
    trainer->time.tokens += tokens;
}

static rondo_result update(struct trainer *trainer, const rondo_adamw *adamw)
{
    rondo_result result;

    rondo_trace_begin("update", 0);
    result = trainer->engine->ops->update(trainer->engine, adamw, trainer->step + 1,
                                          &trainer->point.norm);
    rondo_trace_end("update", 0);
    return result;
}

static rondo_result is_finite(const struct trainer *trainer)
{
    if (isfinite(trainer->point.norm))
        return RONDO_OK;
    return say(RONDO_ERROR_INVALID, "the gradient is not finite in step %lu: try a smaller --rate",
               (unsigned long)trainer->step + 1);
}

static void begin(struct trainer *trainer, struct step *ret_step)
{
    ret_step->start = clock_now();
    ret_step->waited = trainer->time.waiting;
    trainer->engine->ops->times(trainer->engine, &ret_step->before);
    trainer->point = (struct curve_point){.held_accuracy = -1, .held_loss = -1};
}

/* The step is done: it has a number, and is a point of the curve. */
static void finish(struct trainer *trainer, const struct step *step, const rondo_adamw *adamw)
{
    trainer->step++;
    trainer->progress_before = trainer->progress;
    trainer->taken += (uint64_t)trainer->micro_batches * (uint64_t)trainer->options->batch;
    trainer->progress = trainer_progress(trainer);
    trainer->point.step = trainer->step;
    trainer->point.rate = (double)adamw->rate;
    take_time(trainer, step);
}

rondo_result step_whole(struct trainer *trainer)
{
    const rondo_adamw adamw = adamw_of(trainer);
    struct step step;
    rondo_result result;

    begin(trainer, &step);
    result = passes(trainer);
    if (!result)
        result = update(trainer, &adamw);
    if (!result)
        result = mean_loss(trainer, &trainer->point.loss);
    if (!result)
        result = is_finite(trainer);
    if (!result)
        finish(trainer, &step, &adamw);
    return result;
}

rondo_result step_try(struct trainer *trainer, struct step *ret_step)
{
    uint64_t sums[2];
    rondo_result result;

    begin(trainer, ret_step);
    result = passes(trainer);
    if (!result)
        result = mean_loss(trainer, &trainer->point.loss);
    if (result)
        return result;
    sums[0] = trainer->step_ledger.count;
    sums[1] = trainer->step_ledger.sum;
    result = say_comm(rondo_all_reduce(sums, sums, 2, RONDO_UINT64, RONDO_SUM, trainer->comm, NULL),
                      trainer->comm);
    trainer->step_ledger = (struct ledger){sums[0], sums[1]};
    return result;
}

rondo_result step_keep(struct trainer *trainer, const struct step *step)
{
    const rondo_adamw adamw = adamw_of(trainer);
    rondo_result result = update(trainer, &adamw);

    if (!result)
        result = is_finite(trainer);
    if (result)
        return result;
    trainer->ledger.count += trainer->step_ledger.count;
    trainer->ledger.sum += trainer->step_ledger.sum;
    finish(trainer, step, &adamw);
    return RONDO_OK;
}
