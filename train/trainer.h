/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trainer.h - one rank's training, as its parts see it.
 *
 *     train.c       opens everything, goes through the steps
 *     step.c        one of them
 *     elastic.c     the same with ranks that come and go; ledger.c: no sample twice
 *     evaluate.c    what was learned, by what is held out
 *     sample.c      what the model writes
 *     saved.c       checkpoints
 *     curve.c       a point per step: in memory and as CSV; plot.c draws it
 *     report.c      what people get to see
 *
 * All figures that a checkpoint or the loss curve depend on are computed in an order that does not
 * depend on the number of ranks.
 */
#ifndef RONDO_TRAIN_TRAINER_H
#define RONDO_TRAIN_TRAINER_H

#include "train/corpus.h"
#include "train/curve.h"
#include "train/engine.h"
#include "train/ledger.h"
#include "train/loader.h"
#include "train/model/model.h"
#include "train/options.h"

/* The score of what is held out. */
struct score {
    double loss;     /* per token that counts */
    double accuracy; /* 0 .. 1: of whole records, or of tokens (corpus->exact) */
};

/* Since the program began; seconds, the means over ranks at the end. */
struct trainer_time {
    double training, evaluating, saving;
    double waiting;       /* part of training in which nothing was computed */
    double communication; /* of gradients; negative: not known */
    double hidden;        /* which part of it went on while others computed; negative: not known */
    uint64_t bytes;       /* of gradients given to the exchange, by this rank */
    uint64_t tokens;      /* of all ranks */
    double recovering;    /* with --elastic: from work that did not count to work again */
};

/* The state of things as a step began. */
struct step {
    double start, waited;
    struct engine_times before;
};

struct trainer {
    const struct train_options *options;
    rondo_comm *comm;
    int rank, size;
    struct corpus *corpus;
    struct model *model;
    struct loader *loader;
    struct engine *engine;
    struct curve *curve;
    int micro_batches;        /* of a step, of all ranks */
    int passes;               /* of this rank in a step */
    double *losses;           /* of each micro-batch of a step */
    double rate_factor;       /* of the learning rate */
    uint64_t step;            /* how many are done */
    uint64_t began;           /* with which step this process did */
    uint64_t progress;        /* in steps of --steps; they are others if ranks keep their batches */
    uint64_t progress_before; /* the last step */
    struct curve_point point; /* of the step */
    struct trainer_time time;
    struct score score;      /* the last one */
    int late_rank;           /* who held the others up longest, if late.passes is not 0 */
    rondo_ddp_lateness late; /* of that rank */

    /* With --elastic. */
    uint64_t planned;              /* samples of a step of as many ranks as there were at first */
    uint64_t taken;                /* samples of all epochs that have counted */
    struct ledger ledger;          /* of them */
    struct ledger step_ledger;     /* of the step at hand */
    uint64_t lost, joined, undone; /* ranks; steps that did not count */
};

rondo_result train(const struct train_options *options, rondo_comm *comm);
/* Opens the communicators, too, as ranks come and go. */
rondo_result train_elastic(const struct train_options *options);

/* train.c: corpus, model and loader; then who computes what of `micro_batches`. */
rondo_result trainer_open_parts(struct trainer *trainer);
rondo_result trainer_share_out(struct trainer *trainer);
void trainer_close_parts(struct trainer *trainer);
uint64_t trainer_progress(const struct trainer *trainer);
/* Says whether what is done `every` so many steps is to be done after this one. */
bool trainer_is_due(const struct trainer *trainer, uint64_t every);
/* Collective: evaluate; save; add up times; find out who came late. */
rondo_result trainer_look(struct trainer *trainer);
rondo_result trainer_save(struct trainer *trainer);
rondo_result trainer_sum_times(struct trainer *trainer);
rondo_result trainer_find_late(struct trainer *trainer);

/* Collective: a step. */
rondo_result step_whole(struct trainer *trainer);
/* With --elastic in two parts: the collective one keeps nothing, the local one keeps it. */
rondo_result step_try(struct trainer *trainer, struct step *ret_step);
rondo_result step_keep(struct trainer *trainer, const struct step *step);

/* Collective. */
rondo_result evaluate(struct trainer *trainer, struct score *ret_score);
/* Collective; rank 0 writes to `to`. */
rondo_result sample(struct trainer *trainer, FILE *to);
/* Collective. */
/* Fails if a checkpoint could not be written. Called before the first step. */
rondo_result saved_try(struct trainer *trainer);
rondo_result saved_write(struct trainer *trainer);
/* Collective over `comm`, NULL: this process alone; *ret_found says whether there was one. */
rondo_result saved_read(struct trainer *trainer, rondo_comm *comm, bool *ret_found);

/* Rank 0 only. */
void report_start(const struct trainer *trainer);
void report_step(const struct trainer *trainer);
rondo_result report_end(const struct trainer *trainer);

#endif
