/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - where parameters, gradients and the optimizer's state live, and how ranks agree.
 *
 * engine_ddp.c has all of it on every rank and averages gradients in buckets (rondo/ddp.h),
 * engine_shards.c divides it among ranks (rondo/train.h). Nothing else in the program knows which
 * it is. All calls but memory, times and close are collective.
 */
#ifndef RONDO_TRAIN_ENGINE_H
#define RONDO_TRAIN_ENGINE_H

#include "train/model/model.h"
#include "train/options.h"

#include "rondo/train.h"

/* A checkpoint has these of each parameter: the value and the optimizer's two moments. */
enum { ENGINE_VALUE = -1, ENGINE_FIRST, ENGINE_SECOND, ENGINE_STATES };

struct engine {
    const struct engine_ops *ops;
    struct model *model;
    rondo_comm *comm;
    const struct train_options *options;
    real weight; /* with --elastic: of the micro-batch at hand in the sum of gradients */
};

/* Bytes on this rank. */
struct engine_memory {
    size_t parameters, gradients, states;
    size_t whole; /* what these three take when nothing is divided */
};

/* Sums since the engine was opened. */
struct engine_times {
    double exposed;       /* seconds in which this rank did nothing but wait for communication */
    double communication; /* ... in which there was any; negative: not known */
    uint64_t bytes;       /* of gradients given to the exchange; 0: not known */
};

struct engine_ops {
    /* Forward, loss and backward of one micro-batch; `last`: it ends the step. */
    rondo_result (*pass)(struct engine *engine, const struct model_batch *batch, bool last,
                         struct loss *ret_loss);
    /* Fills the model's logits, where the model's arithmetic has its memory. */
    rondo_result (*forward)(struct engine *engine, const struct model_batch *batch);
    /* Clip the gradient, then step number `step` (from 1) of AdamW. */
    rondo_result (*update)(struct engine *engine, const rondo_adamw *adamw, uint64_t step,
                           double *ret_norm);
    /* All elements of a value or state; to every rank, and back from any one of them. */
    rondo_result (*export)(struct engine *engine, int parameter, int state, float *ret_values);
    rondo_result (*import)(struct engine *engine, int parameter, int state, const float *values);
    void (*memory)(struct engine *engine, struct engine_memory *ret_memory);
    void (*times)(struct engine *engine, struct engine_times *ret_times);
    /* NULL: not known. Collective: who comes late, `ret` of as many as there are ranks. */
    rondo_result (*lateness)(struct engine *engine, rondo_ddp_lateness *ret);
    void (*close)(struct engine *engine);
};

/* The parameters begin as the seed says. The model's table is filled by the engine from then on. */
rondo_result engine_ddp_open(const struct train_options *options, struct model *model,
                             rondo_comm *comm, struct engine **ret_engine);
/* Collective: go on, on another communicator. And: rank 0's parameters, which it may have read from
 * a checkpoint, their states and one array `more` to all ranks. Local: no peer waits for this rank
 * any more; NULL engine: nobody did. */
rondo_result engine_ddp_move(struct engine *engine, rondo_comm *comm);
rondo_result engine_ddp_share(struct engine *engine, const rondo_ddp_tensor *more);
void engine_ddp_revoke(struct engine *engine);
rondo_result engine_shards_open(const struct train_options *options, struct model *model,
                                rondo_comm *comm, struct engine **ret_engine);

#endif
