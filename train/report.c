/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - progress on stderr while it goes on, the summary on stdout at the end, and as JSON. */
#include "train/trainer.h"

#include "train/clock.h"
#include "train/common/say.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_start(const struct trainer *trainer)
{
    const struct corpus *corpus = trainer->corpus;

    fprintf(stderr,
            "rondo train: %d rank%s%s, a model of %zu parameters; %zu records to learn, %zu held "
            "out\n",
            trainer->size, trainer->size == 1 ? "" : "s", trainer->options->cuda ? " on GPUs" : "",
            trainer->model->element_count, corpus->trained, corpus->held_out);
    if (trainer->began)
        fprintf(stderr, "rondo train: goes on after step %" PRIu64 " of %s\n", trainer->began,
                trainer->options->checkpoint);
    if (trainer->began && trainer->progress >= trainer->options->steps)
        fprintf(stderr, "rondo train: that is all of --steps %" PRIu64 "; more of them go on\n",
                trainer->options->steps);
}

/* Ranks that keep their batches make steps of another size than those of --steps. */
static double seconds_left(const struct trainer *trainer)
{
    const struct trainer_time *time = &trainer->time;
    double each = (time->training + time->evaluating + time->saving) /
                  (double)(trainer->step - trainer->began);
    double steps = (double)trainer->options->steps - (double)trainer->progress;

    return each * fmax(0, steps / trainer->rate_factor);
}

static void print_progress(const struct trainer *trainer, const struct curve_point *point)
{
    fprintf(stderr, "step %5" PRIu64 "/%" PRIu64 "  loss %.4f", trainer->progress,
            trainer->options->steps, point->loss);
    if (trainer->score.accuracy >= 0)
        fprintf(stderr, "  held out %5.1f %%", 100 * trainer->score.accuracy);
    fprintf(stderr, "  %.0f tokens/s  computing %.1f %%", point->tokens_per_s,
            100 * point->computing);
    if (point->hidden >= 0)
        fprintf(stderr, "  hidden %.0f %%", 100 * point->hidden);
    fprintf(stderr, "  %.0f s left", seconds_left(trainer));
}

/* On a terminal one line that moves on, else a line per evaluation. */
void report_step(const struct trainer *trainer)
{
    static double last;
    const struct curve_point *point = curve_at(trainer->curve, curve_count(trainer->curve) - 1);
    bool done = trainer->progress >= trainer->options->steps;

    if (!isatty(STDERR_FILENO)) {
        if (point->held_accuracy < 0 && !done)
            return;
        print_progress(trainer, point);
        fputc('\n', stderr);
        return;
    }
    if (!done && clock_now() - last < 0.2)
        return;
    last = clock_now();
    fputc('\r', stderr);
    print_progress(trainer, point);
    fputs(done ? "  \n" : "  ", stderr);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds; of the steps of this process. The first ones warm up. */
static double median_step(const struct trainer *trainer)
{
    size_t count = curve_count(trainer->curve);
    size_t ours = (size_t)(trainer->step - trainer->began);
    size_t skipped = ours > 20 ? 5 : 0;
    size_t first = count > ours ? count - ours : 0;
    double *seconds = calloc(count + 1, sizeof(*seconds));
    size_t kept = 0;
    double median;

    if (!seconds)
        return 0;
    for (size_t i = first + skipped; i < count; i++)
        seconds[kept++] = curve_at(trainer->curve, i)->seconds;
    qsort(seconds, kept, sizeof(*seconds), by_size);
    median = seconds[kept / 2];
    free(seconds);
    return median;
}

static double megabytes(size_t bytes)
{
    return (double)bytes / 1e6;
}

static json_t *json_of(const struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    const struct trainer_time *time = &trainer->time;
    struct engine_memory memory;
    double steps = (double)(trainer->step - trainer->began);

    trainer->engine->ops->memory(trainer->engine, &memory);
    return json_pack(
        "{s:i, s:I, s:i, s:i, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:f, s:I, s:I, s:I, s:I, s:f, s:i, s:f, s:{s:I, s:I, s:I, s:I}}",
        "ranks", trainer->size, "steps", (json_int_t)trainer->step, "batch", options->batch,
        "accumulate", options->accumulate, "computes_on", options->cuda ? "cuda" : "host", "shard",
        train_shard_name(options->shard), "precision", train_precision_name(options->precision),
        "parameters", (json_int_t)trainer->model->element_count, "tokens_per_step",
        (json_int_t)(steps > 0 ? (double)time->tokens / steps : 0), "seconds", time->training,
        "tokens_per_s", time->training > 0 ? (double)time->tokens / time->training : 0.0,
        "median_step_s", median_step(trainer), "waiting", time->waiting, "saving", time->saving,
        "communicating", time->communication, "hidden", time->hidden, "bytes_per_step",
        steps > 0 ? (double)time->bytes / steps : 0.0, "held_out_loss", trainer->score.loss,
        "held_out_accuracy", trainer->score.accuracy, "lost", (json_int_t)trainer->lost, "joined",
        (json_int_t)trainer->joined, "undone", (json_int_t)trainer->undone, "samples",
        (json_int_t)trainer->ledger.count, "recovering", time->recovering, "latest_rank",
        trainer->late.passes ? trainer->late_rank : -1, "latest_held_up", trainer->late.held_up,
        "memory", "parameters", (json_int_t)memory.parameters, "gradients",
        (json_int_t)memory.gradients, "states", (json_int_t)memory.states, "undivided",
        (json_int_t)memory.whole);
}

static rondo_result write_json(const struct trainer *trainer)
{
    json_t *json = json_of(trainer);
    int failed = !json || json_dump_file(json, trainer->options->json, JSON_INDENT(2));

    json_decref(json);
    return failed ? say(RONDO_ERROR_SYSTEM, "cannot write %s: %s", trainer->options->json,
                        strerror(errno))
                  : RONDO_OK;
}

static void print_memory(const struct trainer *trainer)
{
    struct engine_memory memory;
    size_t sum;

    trainer->engine->ops->memory(trainer->engine, &memory);
    sum = memory.parameters + memory.gradients + memory.states;
    printf("memory per rank: parameters %.2f MB, gradients %.2f MB, optimizer %.2f MB",
           megabytes(memory.parameters), megabytes(memory.gradients), megabytes(memory.states));
    if (sum < memory.whole)
        printf("; together %.2f MB of %.2f MB (--shard %s)", megabytes(sum),
               megabytes(memory.whole), train_shard_name(trainer->options->shard));
    printf("\n");
}

static void print_time(const struct trainer *trainer)
{
    const struct trainer_time *time = &trainer->time;
    double all = time->training + time->evaluating + time->saving;

    if (all <= 0 || !time->tokens)
        return;
    printf("time: %.1f s, of which computing %.1f %%, waiting for communication %.1f %%, "
           "evaluating %.1f %%",
           all, 100 * fmax(0, time->training - time->waiting) / all, 100 * time->waiting / all,
           100 * time->evaluating / all);
    if (trainer->options->checkpoint)
        printf(", saving %.1f %%", 100 * time->saving / all);
    printf("\n");
    if (time->hidden >= 0 && trainer->size > 1)
        printf("hidden communication: %.1f %% of %.2f s went on behind the backward pass\n",
               100 * time->hidden, time->communication);
    if (trainer->late.passes)
        printf("latest rank: %d; it came last in %" PRIu64 " of %" PRIu64
               " exchanges, and held the others up for %.2f s\n",
               trainer->late_rank, trainer->late.last, trainer->late.passes, trainer->late.held_up);
    printf("speed: %.0f tokens/s\n", (double)time->tokens / time->training);
}

/* The ledger is right, else there is no report. */
static void print_elastic(const struct trainer *trainer)
{
    const uint64_t samples = trainer->corpus->trained;

    if (!trainer->options->elastic.most)
        return;
    printf("ranks: %" PRIu64 " lost, %" PRIu64 " new; %" PRIu64
           " steps done again; %.2f s until work went on\n",
           trainer->lost, trainer->joined, trainer->undone, trainer->time.recovering);
    printf("samples: %" PRIu64 ", each counted once: %" PRIu64 " epochs of %" PRIu64 " and %" PRIu64
           " of the next (sum %016" PRIx64 ", as expected)\n",
           trainer->ledger.count, trainer->taken / samples, samples, trainer->taken % samples,
           trainer->ledger.sum);
}

rondo_result report_end(const struct trainer *trainer)
{
    const struct train_options *options = trainer->options;
    rondo_result result = options->json ? write_json(trainer) : RONDO_OK, drawn;
    char title[128];

    if (options->svg) {
        snprintf(title, sizeof(title), "rondo train: %s, %d rank%s, %zu parameters",
                 trainer->corpus->name, trainer->size, trainer->size == 1 ? "" : "s",
                 trainer->model->element_count);
        drawn = plot_write(trainer->curve, title, options->svg);
        result = result ? result : drawn;
    }
    print_memory(trainer);
    print_time(trainer);
    print_elastic(trainer);
    printf("held-out loss %.4f\n", trainer->score.loss);
    printf("held-out accuracy %.1f %%\n", 100 * trainer->score.accuracy);
    fflush(stdout);
    return result;
}
