/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trainer.h - one rank's training, as its parts see it.
 *
 *     train.c       opens everything, goes through the steps
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
#include "train/loader.h"
#include "train/model/model.h"
#include "train/options.h"

/* What is held out. */
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
    double *losses; /* of each micro-batch of a step */
    uint64_t step;  /* how many are done */
    uint64_t began; /* with which step this process did */
    struct trainer_time time;
    struct score score; /* the last one */
};

rondo_result train(const struct train_options *options, rondo_comm *comm);

/* Collective. */
rondo_result evaluate(struct trainer *trainer, struct score *ret_score);
/* Collective; rank 0 writes to `to`. */
rondo_result sample(struct trainer *trainer, FILE *to);
/* Collective. */
rondo_result saved_write(struct trainer *trainer);
/* Collective; *ret_found says whether there was one. */
rondo_result saved_read(struct trainer *trainer, bool *ret_found);

/* Rank 0 only. */
void report_start(const struct trainer *trainer);
void report_step(const struct trainer *trainer);
rondo_result report_end(const struct trainer *trainer);

#endif
