/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * train.c - the training loop.
 *
 *     open corpus, model, engine; go on from a checkpoint if there is one
 *     for each step:   for each micro-batch of this rank: forward, loss, backward
 *                      update; the mean loss of all micro-batches of all ranks
 *                      now and then: evaluate, checkpoint
 *     evaluate, checkpoint, sample, report
 */
#include "train/trainer.h"

#include "train/clock.h"
#include "train/cuda/gpu.h"
#include "train/common/say.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float beta1 = 0.9f, beta2 = 0.99f, epsilon = 1e-8f;
static const double last_rate = 0.02; /* of the schedule, as a part of the peak */

static rondo_adamw adamw_of(const struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    const rondo_schedule schedule = {.rate = options->rate,
                                     .floor = last_rate * options->rate,
                                     .warmup = options->warmup,
                                     .steps = options->steps};

    return (rondo_adamw){.rate = (float)rondo_schedule_rate(&schedule, trainer->step),
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
    size_t count = (size_t)trainer->size * (size_t)trainer->options->accumulate;
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

static rondo_result passes(struct trainer *trainer)
{
    int count = trainer->options->accumulate;
    rondo_result result = RONDO_OK;

    memset(trainer->losses, 0, (size_t)trainer->size * (size_t)count * sizeof(*trainer->losses));
    for (int pass = 0; !result && pass < count; pass++) {
        struct model_batch batch;
        struct loss loss = {0};

        loader_next(trainer->loader, pass, &batch);
        result = trainer->engine->ops->pass(trainer->engine, &batch, pass + 1 == count, &loss);
        trainer->losses[trainer->rank * count + pass] = loss.sum / (double)loss.counted;
    }
    return result;
}

/* What this step took; `before` as it began. */
static void take_time(struct trainer *trainer, double start, const struct engine_times *before,
                      double waited_before, struct curve_point *point)
{
    size_t sequences = (size_t)trainer->size * (size_t)trainer->options->accumulate *
                       (size_t)trainer->options->batch;
    size_t tokens = sequences * (size_t)trainer->corpus->length;
    struct engine_times after;
    double exposed, communication;

    trainer->engine->ops->times(trainer->engine, &after);
    exposed = after.exposed - before->exposed;
    communication = after.communication - before->communication;
    point->seconds = clock_now() - start;
    point->tokens_per_s = (double)tokens / point->seconds;
    trainer->time.waiting += exposed;
    point->computing = 1 - (trainer->time.waiting - waited_before) / point->seconds;
    point->hidden = communication > 0 ? fmax(0, 1 - exposed / communication) : -1;
    trainer->time.training += point->seconds;
    trainer->time.tokens += tokens;
}

static rondo_result step(struct trainer *trainer, struct curve_point *ret_point)
{
    struct curve_point point = {.held_accuracy = -1, .held_loss = -1};
    rondo_adamw adamw = adamw_of(trainer);
    double start = clock_now();
    double waited = trainer->time.waiting;
    struct engine_times before;
    rondo_result result;

    trainer->engine->ops->times(trainer->engine, &before);
    result = passes(trainer);
    if (!result)
        result =
            trainer->engine->ops->update(trainer->engine, &adamw, trainer->step + 1, &point.norm);
    if (!result)
        result = mean_loss(trainer, &point.loss);
    if (!result && !isfinite(point.norm))
        result =
            say(RONDO_ERROR_INVALID, "the gradient is not finite in step %lu: try a smaller --rate",
                (unsigned long)trainer->step + 1);
    if (result)
        return result;
    trainer->step++;
    point.step = trainer->step;
    point.rate = (double)adamw.rate;
    take_time(trainer, start, &before, waited, &point);
    *ret_point = point;
    return RONDO_OK;
}

static bool is_due(const struct trainer *trainer, uint64_t every)
{
    return trainer->step == trainer->options->steps || (every && trainer->step % every == 0);
}

static rondo_result look(struct trainer *trainer)
{
    double start = clock_now();
    rondo_result result = evaluate(trainer, &trainer->score);

    trainer->time.evaluating += clock_now() - start;
    return result;
}

static rondo_result save(struct trainer *trainer)
{
    double start = clock_now();
    rondo_result result = saved_write(trainer);

    trainer->time.saving += clock_now() - start;
    return result;
}

static rondo_result step_and_tell(struct trainer *trainer)
{
    struct curve_point point;
    rondo_result result = step(trainer, &point);

    if (!result && is_due(trainer, trainer->options->evaluate)) {
        result = look(trainer);
        point.held_loss = trainer->score.loss;
        point.held_accuracy = trainer->score.accuracy;
    }
    if (!result && trainer->rank == 0)
        result = curve_add(trainer->curve, &point);
    if (!result && trainer->options->checkpoint && is_due(trainer, trainer->options->every))
        result = save(trainer);
    if (!result && trainer->rank == 0)
        report_step(trainer);
    return result;
}

/*
 * Means over ranks, for the report; of all times, as a rank that the others wait for, like rank 0
 * while it writes, has shorter steps than they have.
 */
static rondo_result sum_times(struct trainer *trainer)
{
    struct trainer_time *time = &trainer->time;
    struct engine_times engine;
    double exposed;
    double *const means[] = {&time->training, &time->evaluating, &time->saving,
                             &time->waiting,  &exposed,          &time->communication};
    enum { MEANS = sizeof(means) / sizeof(means[0]) };
    double sums[MEANS];
    rondo_result result;

    trainer->engine->ops->times(trainer->engine, &engine);
    exposed = engine.exposed;
    time->communication = engine.communication;
    time->bytes = engine.bytes;
    for (int i = 0; i < MEANS; i++)
        sums[i] = *means[i];
    result = rondo_all_reduce(sums, sums, MEANS, RONDO_FLOAT64, RONDO_AVG, trainer->comm, NULL);
    for (int i = 0; i < MEANS; i++)
        *means[i] = sums[i];
    time->hidden = time->communication > 0 ? fmax(0, 1 - exposed / time->communication) : -1;
    return say_comm(result, trainer->comm);
}

static rondo_result run(struct trainer *trainer)
{
    rondo_result result = RONDO_OK;

    if (trainer->rank == 0)
        report_start(trainer);
    while (!result && trainer->step < trainer->options->steps)
        result = step_and_tell(trainer);
    if (!result && trainer->score.accuracy < 0)
        result = look(trainer);
    if (!result)
        result = sum_times(trainer);
    if (!result)
        result = sample(trainer, stdout);
    if (!result && trainer->rank == 0)
        result = report_end(trainer);
    return result;
}

static rondo_result open_corpus(struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    char error[512];

    if (!options->data) {
        trainer->corpus = corpus_open_sums(options->digits);
        return trainer->corpus ? RONDO_OK : say_memory();
    }
    trainer->corpus = corpus_open_text(options->data, options->context, error, sizeof(error));
    return trainer->corpus ? RONDO_OK : say(RONDO_ERROR_INVALID, "%s", error);
}

static rondo_result open_parts(struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    struct model_shape shape = {.width = options->width,
                                .heads = options->heads,
                                .layers = options->layers,
                                .sequences = options->batch};
    size_t micro_batches = (size_t)trainer->size * (size_t)options->accumulate;
    rondo_result result = open_corpus(trainer);

    if (result)
        return result;
    shape.vocabulary = trainer->corpus->vocabulary;
    shape.length = trainer->corpus->length;
    trainer->model = model_open(&shape, options->cuda ? &gpu_arithmetic : &arithmetic_host);
    trainer->losses = calloc(micro_batches, sizeof(*trainer->losses));
    if (!trainer->model || !trainer->losses)
        return say_memory();
    result = (options->shard ? engine_shards_open : engine_ddp_open)(
        options, trainer->model, trainer->comm, &trainer->engine);
    return result ? result : loader_open(options, trainer->corpus, trainer->comm, &trainer->loader);
}

/* Where the training begins, and the curve up to there. */
static rondo_result open_past(struct trainer *trainer)
{
    bool found = false;
    rondo_result result = trainer->options->resume ? saved_read(trainer, &found) : RONDO_OK;

    trainer->began = trainer->step;
    if (!result && trainer->options->resume && !found && trainer->rank == 0)
        fprintf(stderr, "rondo train: there is no %s yet: begins with step 1\n",
                trainer->options->checkpoint);
    if (!result && trainer->rank == 0)
        result = curve_open(trainer->options->csv, trainer->step, &trainer->curve);
    return result;
}

static void close_parts(struct trainer *trainer)
{
    curve_close(trainer->curve);
    loader_close(trainer->loader);
    if (trainer->engine)
        trainer->engine->ops->close(trainer->engine);
    model_close(trainer->model);
    corpus_close(trainer->corpus);
    free(trainer->losses);
}

rondo_result train(const struct train_options *options, rondo_comm *comm)
{
    struct trainer trainer = {.options = options,
                              .comm = comm,
                              .rank = rondo_comm_rank(comm),
                              .size = rondo_comm_size(comm),
                              .score = {.accuracy = -1}};
    rondo_result result = open_parts(&trainer);

    if (!result)
        result = open_past(&trainer);
    if (!result)
        result = run(&trainer);
    close_parts(&trainer);
    return result;
}
