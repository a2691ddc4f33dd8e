/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elastic.c - `rondo train --elastic`: training with ranks that come and go (rondo/elastic.h).
 *
 * A training is a row of pieces of work, and after each the ranks that are left agree on whether it
 * counts. What comes next follows from what has counted, so all ranks do the same next:
 *
 *     settle    after a change of ranks: the model moves, newcomers get what the others have
 *     step      gradients and losses; the update, which is local, comes when it counts
 *     look      at what is held out, when it is due
 *     save      a checkpoint, when it is due
 *     sum       times over ranks, at the end
 *
 * A piece that does not count leaves nothing behind, so it is simply done again.
 */
#include "train/trainer.h"

#include "train/clock.h"
#include "train/common/say.h"

#include "rondo/elastic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum work { SETTLE, STEP, LOOK, SAVE, SUM, NOTHING };

/* All that a newcomer gets besides parameters and the optimizer's state. */
struct course {
    uint64_t step, progress, progress_before, planned, taken;
    uint64_t lost, joined, undone;
    struct ledger ledger;
    struct score score;
    struct curve_point point; /* of the step that is tried, or has just been */
    struct curve_point kept;  /* the last one of the curve */
    int32_t micro_batches;    /* of a step of as many ranks as there were at first */
    int32_t point_is_new;     /* it is not in the curve yet */
    int32_t looks, saves;     /* it is due */
    int32_t is_summed;
};

struct elastic {
    struct trainer trainer;
    rondo_elastic *job;
    struct course course;
    struct step step;
    bool is_settled;
    double trouble_since; /* clock; 0: none */
};

/* ---- Settling -------------------------------------------------------------------------------- */

/* Copies what both have, in one direction. */
static void pack(struct elastic *me)
{
    const struct trainer *trainer = &me->trainer;
    struct course *course = &me->course;

    course->step = trainer->step;
    course->progress = trainer->progress;
    course->progress_before = trainer->progress_before;
    course->planned = trainer->planned;
    course->taken = trainer->taken;
    course->lost = trainer->lost;
    course->joined = trainer->joined;
    course->undone = trainer->undone;
    course->ledger = trainer->ledger;
    course->score = trainer->score;
    course->point = trainer->point;
}

static void unpack(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    const struct course *course = &me->course;

    if (!rondo_elastic_has_state(me->job))
        trainer->began = course->step;
    trainer->step = course->step;
    trainer->progress = course->progress;
    trainer->progress_before = course->progress_before;
    trainer->planned = course->planned;
    trainer->taken = course->taken;
    trainer->lost = course->lost;
    trainer->joined = course->joined;
    trainer->undone = course->undone;
    trainer->ledger = course->ledger;
    trainer->score = course->score;
    trainer->point = course->point;
}

/* Rank 0 at the beginning: the first steps, or what a checkpoint has. */
static rondo_result begin(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    const struct train_options *options = trainer->options;
    bool found = false;
    rondo_result result;

    trainer->micro_batches = trainer->size * options->accumulate;
    trainer->planned = (uint64_t)trainer->micro_batches * (uint64_t)options->batch;
    result = options->resume ? saved_read(trainer, NULL, &found) : RONDO_OK;
    if (result)
        return result;
    if (options->resume && !found)
        fprintf(stderr, "rondo train: there is no %s yet: begins with step 1\n",
                options->checkpoint);
    trainer->progress = trainer->progress_before = trainer_progress(trainer);
    me->course.micro_batches = (int32_t)(trainer->planned / (uint64_t)options->batch);
    /* It is due after the last step, also where that was done before. */
    me->course.looks = trainer_is_due(trainer, 0);
    return RONDO_OK;
}

/* The samples of a step among the ranks that there are. */
static rondo_result share_out(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    int planned = me->course.micro_batches, now = trainer->size * trainer->options->accumulate;
    bool each = trainer->options->each;

    trainer->micro_batches = each ? now : planned;
    trainer->rate_factor = each ? (double)now / planned : 1;
    return trainer_share_out(trainer);
}

static rondo_result take_over(struct elastic *me, bool share)
{
    const rondo_ddp_tensor course = {
        .data = &me->course, .count = sizeof(me->course), .type = RONDO_UINT8};
    rondo_result result = RONDO_OK;

    if (share) {
        pack(me);
        result = engine_ddp_share(me->trainer.engine, &course);
        if (!result)
            unpack(me);
    }
    return result ? result : share_out(me);
}

static rondo_result settle(struct elastic *me, bool share)
{
    struct trainer *trainer = &me->trainer;
    bool has_state = rondo_elastic_has_state(me->job);
    rondo_result result = RONDO_OK;

    if (!has_state && trainer->engine) { /* what it has may be half of it */
        trainer->engine->ops->close(trainer->engine);
        trainer->engine = NULL;
    }
    if (trainer->engine)
        result = engine_ddp_move(trainer->engine, trainer->comm);
    else
        result = engine_ddp_open(trainer->options, trainer->model, trainer->comm, &trainer->engine);
    if (!result && !has_state && trainer->rank == 0)
        result = begin(me);
    return result ? result : take_over(me, share);
}

/* ---- What counts ----------------------------------------------------------------------------- */

/* Rank 0 has the curve, whoever that is now. The rank 0 before may have ended between agreeing that
 * a step counts and writing its point, so the next one begins by writing that point again. */
static rondo_result keep_point(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    struct course *course = &me->course;
    bool is_new = course->point_is_new && !course->looks;
    rondo_result result = RONDO_OK;

    if (trainer->rank == 0 && !trainer->curve && course->kept.step > 0) {
        result = curve_open(trainer->options->csv, course->kept.step - 1, &trainer->curve);
        if (!result)
            result = curve_add(trainer->curve, &course->kept);
    }
    if (result || !is_new)
        return result;
    course->point_is_new = 0;
    course->kept = trainer->point;
    if (trainer->rank != 0)
        return RONDO_OK;
    if (!trainer->curve)
        result = curve_open(trainer->options->csv, course->kept.step - 1, &trainer->curve);
    if (!result)
        result = curve_add(trainer->curve, &course->kept);
    if (!result)
        report_step(trainer);
    return result;
}

static rondo_result keep_step(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    const struct train_options *options = trainer->options;
    rondo_result result = step_keep(trainer, &me->step);

    me->course.point_is_new = 1;
    me->course.looks = trainer_is_due(trainer, options->evaluate);
    me->course.saves = options->checkpoint && trainer_is_due(trainer, options->every);
    return result;
}

static rondo_result keep(struct elastic *me, enum work work)
{
    struct trainer *trainer = &me->trainer;
    rondo_result result = RONDO_OK;

    switch (work) {
    case SETTLE:
        me->is_settled = true;
        if (trainer->rank == 0 && trainer->time.training == 0 && !trainer->joined)
            report_start(trainer);
        break;
    case STEP:
        result = keep_step(me);
        break;
    case LOOK:
        me->course.looks = 0;
        trainer->point.held_loss = trainer->score.loss;
        trainer->point.held_accuracy = trainer->score.accuracy;
        break;
    case SAVE:
        me->course.saves = 0;
        break;
    case SUM:
        me->course.is_summed = 1;
        break;
    case NOTHING:
        break;
    }
    return result ? result : keep_point(me);
}

/* ---- The row --------------------------------------------------------------------------------- */

static enum work next(const struct elastic *me)
{
    const struct trainer *trainer = &me->trainer;

    if (!me->is_settled)
        return SETTLE;
    if (me->course.looks)
        return LOOK;
    if (me->course.saves)
        return SAVE;
    if (trainer->progress < trainer->options->steps)
        return STEP;
    return me->course.is_summed ? NOTHING : SUM;
}

static rondo_result attempt(struct elastic *me, enum work work, bool share)
{
    switch (work) {
    case SETTLE:
        return settle(me, share);
    case STEP:
        return step_try(&me->trainer, &me->step);
    case LOOK:
        return trainer_look(&me->trainer);
    case SAVE:
        return trainer_save(&me->trainer);
    case SUM:
        return trainer_sum_times(&me->trainer);
    case NOTHING:
        break;
    }
    return RONDO_OK;
}

/* The communicator is another one. */
static void change(struct elastic *me, const rondo_elastic_outcome *outcome)
{
    struct trainer *trainer = &me->trainer;

    trainer->comm = rondo_elastic_comm(me->job);
    trainer->rank = rondo_comm_rank(trainer->comm);
    trainer->size = rondo_comm_size(trainer->comm);
    trainer->lost += (uint64_t)outcome->lost;
    trainer->joined += (uint64_t)outcome->joined;
    me->is_settled = false;
    if (trainer->rank == 0 && (outcome->lost || outcome->joined))
        fprintf(stderr,
                "rondo train: %d lost, %d new: goes on with %d rank%s after step %" PRIu64 "\n",
                outcome->lost, outcome->joined, trainer->size, trainer->size == 1 ? "" : "s",
                trainer->step);
}

/* From the beginning of work that did not count, or of settling, to the next that is settled. */
static void take_time(struct elastic *me, enum work work, double began,
                      const rondo_elastic_outcome *outcome)
{
    double now = clock_now();

    if (!rondo_elastic_has_state(me->job) || me->trainer.time.training <= 0)
        return;
    if (!me->trouble_since && !outcome->counts)
        me->trouble_since = began;
    else if (!me->trouble_since && outcome->changed)
        me->trouble_since = now;
    if (me->trouble_since && work == SETTLE && outcome->counts && !outcome->changed) {
        me->trainer.time.recovering += now - me->trouble_since;
        me->trouble_since = 0;
    }
}

/*
 * A checkpoint that cannot be written, say as a rank that was left behind still holds its file, is
 * no reason to end the training: the next one is tried when it is due. The last one has to be.
 */
static void put_off_saving(struct elastic *me, const rondo_elastic_outcome *outcome)
{
    const struct trainer *trainer = &me->trainer;

    if (outcome->lost || trainer->progress >= trainer->options->steps)
        return;
    me->course.saves = 0;
    if (trainer->rank == 0)
        fprintf(stderr, "rondo train: there is no checkpoint of step %" PRIu64 "\n", trainer->step);
}

/* A rank's own trouble, not that another one has failed. */
static void tell_why(const struct elastic *me, rondo_result why)
{
    if (why && why != RONDO_ERROR_PEER && why != RONDO_ERROR_ABORTED && why != RONDO_ERROR_TIMEOUT)
        fprintf(stderr, "rondo train: rank %d: %s\n", me->trainer.rank, said());
}

static rondo_result go(struct elastic *me)
{
    rondo_elastic_outcome outcome = {.share = 1};
    rondo_result result = RONDO_OK;
    enum work work;

    while (!result && (work = next(me)) != NOTHING) {
        double began = clock_now();
        rondo_result worked = attempt(me, work, outcome.share);

        tell_why(me, worked);
        if (worked)
            engine_ddp_revoke(me->trainer.engine);
        result = say_ddp(rondo_elastic_agree(me->job, worked == RONDO_OK, &outcome));
        if (result)
            break;
        if (outcome.counts)
            result = keep(me, work);
        else if (work == STEP)
            me->trainer.undone++;
        else if (work == SAVE)
            put_off_saving(me, &outcome);
        if (outcome.changed)
            change(me, &outcome);
        take_time(me, work, began, &outcome);
    }
    return result;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

/* Proves that each sample was counted once. */
static rondo_result check_samples(const struct trainer *trainer)
{
    struct ledger expected;
    rondo_result result = ledger_expected(trainer->taken, trainer->corpus->trained,
                                          trainer->options->seed, &expected);

    if (result)
        return result;
    if (expected.count != trainer->ledger.count || expected.sum != trainer->ledger.sum)
        return say(RONDO_ERROR_INTERNAL,
                   "of %" PRIu64 " samples up to here %" PRIu64
                   " were counted, and not each of them once: %016" PRIx64 ", not %016" PRIx64
                   "; this is a bug in Rondo",
                   expected.count, trainer->ledger.count, trainer->ledger.sum, expected.sum);
    return RONDO_OK;
}

static rondo_result finish(struct elastic *me)
{
    struct trainer *trainer = &me->trainer;
    rondo_result result = check_samples(trainer);

    if (!result && !trainer->curve && trainer->rank == 0) /* all was done before */
        result = curve_open(trainer->options->csv, trainer->step, &trainer->curve);
    if (!result)
        result = sample(trainer, stdout); /* local, as every rank has the whole model */
    if (!result && trainer->rank == 0)
        result = report_end(trainer);
    return result;
}

rondo_result train_elastic(const struct train_options *options)
{
    const rondo_elastic_config config = {.struct_size = sizeof(config),
                                         .least = options->elastic.least,
                                         .most = options->elastic.most};
    struct elastic me = {.trainer = {.options = options, .score = {.accuracy = -1}}};
    rondo_elastic_outcome first = {0};
    rondo_result result = say_ddp(rondo_elastic_open(&config, NULL, &me.job));

    if (!result) {
        change(&me, &first);
        result = trainer_open_parts(&me.trainer);
    }
    if (!result)
        result = go(&me);
    if (!result)
        result = finish(&me);
    trainer_close_parts(&me.trainer);
    if (result)
        rondo_elastic_fail(me.job);
    rondo_elastic_close(me.job);
    return result;
}
