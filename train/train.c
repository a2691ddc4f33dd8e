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

uint64_t trainer_progress(const struct trainer *trainer)
{
    if (trainer->options->elastic.most && trainer->options->each)
        return trainer->taken / trainer->planned;
    return trainer->step;
}

bool trainer_is_due(const struct trainer *trainer, uint64_t every)
{
    return trainer->progress >= trainer->options->steps ||
           (every && trainer->progress / every > trainer->progress_before / every);
}

rondo_result trainer_look(struct trainer *trainer)
{
    double start = clock_now();
    rondo_result result = evaluate(trainer, &trainer->score);

    trainer->time.evaluating += clock_now() - start;
    return result;
}

rondo_result trainer_save(struct trainer *trainer)
{
    double start = clock_now();
    rondo_result result = saved_write(trainer);

    trainer->time.saving += clock_now() - start;
    return result;
}

static rondo_result step_and_tell(struct trainer *trainer)
{
    struct curve_point *point = &trainer->point;
    rondo_result result = step_whole(trainer);

    if (!result && trainer_is_due(trainer, trainer->options->evaluate)) {
        result = trainer_look(trainer);
        point->held_loss = trainer->score.loss;
        point->held_accuracy = trainer->score.accuracy;
    }
    if (!result && trainer->rank == 0)
        result = curve_add(trainer->curve, point);
    if (!result && trainer->options->checkpoint && trainer_is_due(trainer, trainer->options->every))
        result = trainer_save(trainer);
    if (!result && trainer->rank == 0)
        report_step(trainer);
    return result;
}

/*
 * Means over ranks, for the report; of all times, as a rank that the others wait for, like rank 0
 * while it writes, has shorter steps than they have.
 */
rondo_result trainer_sum_times(struct trainer *trainer)
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
    /* A newcomer has less of all: then those who were there longest. */
    result = rondo_all_reduce(sums, sums, MEANS, RONDO_FLOAT64,
                              trainer->options->elastic.most ? RONDO_MAX : RONDO_AVG, trainer->comm,
                              NULL);
    for (int i = 0; i < MEANS; i++)
        *means[i] = sums[i];
    time->hidden = time->communication > 0 ? fmax(0, 1 - exposed / time->communication) : -1;
    return say_comm(result, trainer->comm);
}

rondo_result trainer_find_late(struct trainer *trainer)
{
    rondo_ddp_lateness *late;
    rondo_result result;

    if (trainer->size < 2 || !trainer->engine->ops->lateness)
        return RONDO_OK;
    late = calloc((size_t)trainer->size, sizeof(*late));
    if (!late)
        return say(RONDO_ERROR_MEMORY, "out of memory for the times of %d ranks", trainer->size);
    result = trainer->engine->ops->lateness(trainer->engine, late);
    for (int rank = 0; !result && rank < trainer->size; rank++)
        if (late[rank].held_up > trainer->late.held_up) {
            trainer->late = late[rank];
            trainer->late_rank = rank;
        }
    free(late);
    return result;
}

static rondo_result run(struct trainer *trainer)
{
    rondo_result result = RONDO_OK;

    if (trainer->rank == 0)
        report_start(trainer);
    while (!result && trainer->step < trainer->options->steps)
        result = step_and_tell(trainer);
    if (!result && trainer->score.accuracy < 0)
        result = trainer_look(trainer);
    if (!result)
        result = trainer_sum_times(trainer);
    if (!result)
        result = trainer_find_late(trainer);
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

rondo_result trainer_open_parts(struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    struct model_shape shape = {.width = options->width,
                                .heads = options->heads,
                                .layers = options->layers,
                                .sequences = options->batch};
    rondo_result result = open_corpus(trainer);

    if (result)
        return result;
    shape.vocabulary = trainer->corpus->vocabulary;
    shape.length = trainer->corpus->length;
    trainer->model = model_open(&shape, options->cuda ? &gpu_arithmetic : &arithmetic_host);
    if (!trainer->model)
        return say_memory();
    return loader_open(options, trainer->corpus, trainer->comm, &trainer->loader);
}

rondo_result trainer_share_out(struct trainer *trainer)
{
    int count = trainer->micro_batches;

    free(trainer->losses);
    trainer->losses = calloc((size_t)count, sizeof(*trainer->losses));
    trainer->passes = (count + trainer->size - 1) / trainer->size;
    return trainer->losses ? RONDO_OK : say_memory();
}

static rondo_result open_all(struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    rondo_result result = trainer_open_parts(trainer);

    if (!result)
        result = (options->shard ? engine_shards_open : engine_ddp_open)(
            options, trainer->model, trainer->comm, &trainer->engine);
    return result ? result : trainer_share_out(trainer);
}

/* Finds where the training begins, and opens the curve up to there. */
static rondo_result open_past(struct trainer *trainer)
{
    bool found = false;
    rondo_result result =
        trainer->options->resume ? saved_read(trainer, trainer->comm, &found) : RONDO_OK;

    trainer->began = trainer->progress = trainer->progress_before = trainer->step;
    if (!result && trainer->options->resume && !found && trainer->rank == 0)
        fprintf(stderr, "rondo train: there is no %s yet: begins with step 1\n",
                trainer->options->checkpoint);
    if (!result && trainer->rank == 0)
        result = curve_open(trainer->options->csv, trainer->step, &trainer->curve);
    return result;
}

void trainer_close_parts(struct trainer *trainer)
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
                              .rate_factor = 1,
                              .score = {.accuracy = -1}};
    rondo_result result;

    trainer.micro_batches = trainer.size * options->accumulate;
    result = open_all(&trainer);

    if (!result)
        result = saved_try(&trainer);
    if (!result)
        result = open_past(&trainer);
    if (!result)
        result = run(&trainer);
    trainer_close_parts(&trainer);
    return result;
}
