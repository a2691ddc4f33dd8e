/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * train.h - what a training loop over ranks needs around ddp.h: which samples a rank takes, how
 * fast it learns, the arithmetic of two optimizers, the norm of gradients, checkpoints, and
 * parameters of which each rank holds only a share.
 *
 * Errors    as in rondo.h: a result; rondo_ddp_last_error() has the sentence of the calling thread.
 * Bits      nothing here depends on how work is cut among ranks: optimizers work element by
 *           element, norms are exact until their last rounding, permutations come from the seed.
 * Calls     "collective" means: all ranks, in the same order, not in an open group. Handles are for
 *           one thread at a time.
 * Zero      what you do not use in a config.
 */
#ifndef RONDO_TRAIN_H
#define RONDO_TRAIN_H

#include <rondo/ddp.h> /* rondo_ddp_average, rondo_ddp_last_error() */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Which samples: as PyTorch's DistributedSampler ------------------------------------------ */

/*
 * All ranks take equally many of `samples`. What does not divide is either left out (`drop_last`)
 * or filled up: the order is read again from its beginning. Rank r takes numbers r, r + size,
 * r + 2 size ... of the order. `rank` and `size` are numbers, not a communicator: a program that
 * wants the same batches on any number of ranks opens as many samplers as it has micro-batches.
 */
typedef struct rondo_sampler_config {
    size_t struct_size; /* sizeof(rondo_sampler_config) */
    size_t samples;     /* in the data set */
    int rank, size;
    int shuffle; /* 1: each epoch has its own order, 0: 0, 1, 2 ... */
    int drop_last;
    uint64_t seed; /* of the orders: the same on every rank */
    int uneven; /* 1: what does not divide is neither left out nor filled up, so the last ranks have
                   one sample less in an epoch: rondo_ddp_join() */
} rondo_sampler_config;

/* The position of a sampler is all that a checkpoint needs of it. */
typedef struct rondo_sampler_position {
    uint64_t epoch;
    uint64_t taken; /* samples of this rank in this epoch, after `first` */
    uint64_t first; /* samples of the epoch that were taken when they were divided anew; else 0 */
} rondo_sampler_position;

typedef struct rondo_sampler rondo_sampler;

/* At the start of epoch 0. */
RONDO_API rondo_result rondo_sampler_open(const rondo_sampler_config *config,
                                          rondo_sampler **ret_sampler);
RONDO_API void rondo_sampler_close(rondo_sampler *sampler); /* accepts NULL */
/* Samples of one rank in one epoch, the same on every rank. */
RONDO_API size_t rondo_sampler_count(const rondo_sampler *sampler);
/* Take the next `wanted` samples, fewer at the end of the epoch; returns how many. 0: the epoch is
 * over, and the next call starts it again. */
RONDO_API size_t rondo_sampler_next(rondo_sampler *sampler, size_t wanted, size_t *ret_samples);
/* Go to the start of an epoch. Who forgets it gets the same order in every epoch. */
RONDO_API void rondo_sampler_set_epoch(rondo_sampler *sampler, uint64_t epoch);
RONDO_API rondo_sampler_position rondo_sampler_tell(const rondo_sampler *sampler);
RONDO_API rondo_result rondo_sampler_seek(rondo_sampler *sampler, rondo_sampler_position position);
/* Returns how much of the epoch's order is done when every rank has taken as many as this one. */
RONDO_API uint64_t rondo_sampler_done(const rondo_sampler *sampler);
/*
 * Ranks have come or gone: go to `epoch`, of whose order the first `done` samples are done, and
 * divide what is left of it, and later epochs, among `size` ranks. `done` is what all ranks know to
 * have counted: rondo_sampler_done() after the last step that did. With `uneven` every sample is
 * taken once, however often this is called.
 */
RONDO_API rondo_result rondo_sampler_divide(rondo_sampler *sampler, int rank, int size,
                                            uint64_t epoch, uint64_t done);

/* ---- How fast: linear scaling, warm-up, cosine ----------------------------------------------- */

/*
 *   rate                  ___
 *   peak = rate * ranks  /   `-.
 *                       /       `-._
 *   start              '            `--- floor
 *                      0  warmup      steps
 */
typedef struct rondo_schedule {
    double rate;     /* good for one rank's batch */
    int ranks;       /* by which it is multiplied; 0: 1. Bigger batches bear longer steps */
    double start;    /* the rate before the first step of the warm-up */
    double floor;    /* the rate after the last step */
    uint64_t warmup; /* steps; 0: none */
    uint64_t steps;  /* of the whole training; 0: the rate stays at its peak after the warm-up */
} rondo_schedule;
/* The rate of a step, the first being 0. When ranks come and go, `ranks` as they are at the moment
 * has it follow them linearly, for a batch per rank that stays; the first number of them for ever
 * keeps it, for a batch per step that stays. */
RONDO_API double rondo_schedule_rate(const rondo_schedule *schedule, uint64_t step);

/* ---- Optimizers: element by element, so any cut into ranges gives the same bits -------------- */

typedef struct rondo_adamw {
    float rate, beta1, beta2, epsilon;
    float decay; /* of weights, apart from the gradient: value -= rate * decay * value */
} rondo_adamw;
/* `first` and `second` are the two moments, zero before step 1; steps count from 1. */
RONDO_API void rondo_adamw_step(const rondo_adamw *settings, uint64_t step, size_t count,
                                float *values, const float *gradients, float *first, float *second);

typedef struct rondo_sgd {
    float rate, momentum;
    float decay; /* of weights, as part of the gradient */
} rondo_sgd;
/* `velocity` is zero before the first step; NULL when there is no momentum. */
RONDO_API void rondo_sgd_step(const rondo_sgd *settings, size_t count, float *values,
                              const float *gradients, float *velocity);

/* ---- The norm of gradients ------------------------------------------------------------------- */

typedef struct rondo_span {
    float *values;
    size_t count;
} rondo_span;

/*
 * The square root of the sum of squares of all elements, exact until it is rounded once at the end.
 * `comm` NULL: of this rank's spans alone, which is right for gradients that are whole on every
 * rank after an all-reduce. Else collective, for gradients of which each rank holds a share: over
 * the spans of all ranks. It is infinite or NaN when an element is, on every rank.
 */
RONDO_API rondo_result rondo_norm(const rondo_span *spans, size_t count, rondo_comm *comm,
                                  double *ret_norm);
/* Computes rondo_norm(), then shrinks all elements so that the norm is at most `limit`. Gradients
 * whose norm is NaN stay as they are: leave out the step. */
RONDO_API rondo_result rondo_clip(const rondo_span *spans, size_t count, double limit,
                                  rondo_comm *comm, double *ret_norm);

/* ---- Checkpoints: a file of named arrays ----------------------------------------------------- */
/*
 * Written by rank 0, and at once: a file of that name is either the old one or the new one,
 * complete, whatever is killed when. Read by rank 0, which checks every byte before anything is
 * handed out, and once more what it hands out, and broadcasts. A scalar is an array of one. The
 * format: docs/checkpoints.md.
 *
 *     rondo_checkpoint_create(path, comm, &c);           rondo_checkpoint_open(path, comm, &c);
 *     rondo_checkpoint_write(c, "step", ...);            rondo_checkpoint_read(c, "step", ...);
 *     rondo_checkpoint_commit(c);                        rondo_checkpoint_close(c);
 *     rondo_checkpoint_close(c);
 */
typedef struct rondo_checkpoint rondo_checkpoint;

/* Collective. `comm` may be NULL: this process alone. */
RONDO_API rondo_result rondo_checkpoint_create(const char *path, rondo_comm *comm,
                                               rondo_checkpoint **ret_checkpoint);
/* Local; other ranks than 0 may leave it out or give NULL as data. */
RONDO_API rondo_result rondo_checkpoint_write(rondo_checkpoint *checkpoint, const char *name,
                                              rondo_type type, size_t count, const void *data);
/* Collective: give the file its name. All ranks hear of an error of rank 0, also of earlier
 * writes; the old file is then untouched. */
RONDO_API rondo_result rondo_checkpoint_commit(rondo_checkpoint *checkpoint);

/* Collective. Every rank then knows what is in the file. */
RONDO_API rondo_result rondo_checkpoint_open(const char *path, rondo_comm *comm,
                                             rondo_checkpoint **ret_checkpoint);
/* Local: how many arrays there are, and what the one at `index` is. The name is the handle's. */
RONDO_API size_t rondo_checkpoint_count(const rondo_checkpoint *checkpoint);
RONDO_API rondo_result rondo_checkpoint_at(const rondo_checkpoint *checkpoint, size_t index,
                                           const char **ret_name, rondo_type *ret_type,
                                           size_t *ret_count);
/* Collective. Type and count must be those of the file. */
RONDO_API rondo_result rondo_checkpoint_read(rondo_checkpoint *checkpoint, const char *name,
                                             rondo_type type, size_t count, void *ret_data);
/* Local; gives up what was created and not committed. Accepts NULL. */
RONDO_API void rondo_checkpoint_close(rondo_checkpoint *checkpoint);

/* ---- Shards: each rank holds 1/N ------------------------------------------------------------- */
/*
 * The model is cut into units (a layer each, say); a unit's parameters lie in one flat array,
 * padded so that it divides into `size` equal shards, of which shard r is rank r's.
 *
 *   level                     parameters   gradients   optimizer state
 *   RONDO_SHARD_OPTIMIZER     whole        whole       shard              ZeRO-1
 *   RONDO_SHARD_GRADIENTS     whole        shard       shard              ZeRO-2
 *   RONDO_SHARD_PARAMETERS    shard        shard       shard              ZeRO-3, FSDP
 *
 * One loop serves all levels; what is not needed at a level costs nothing:
 *
 *   forward, per unit    gather; prefetch the next; compute with _parameter(); release
 *   backward, per unit   gather; prefetch the next; compute, adding to _gradient(); reduce; release
 *   then                 clip; step
 *
 * gather, prefetch, reduce, clip, step, export and add_unit are collective. Communication runs in
 * the background on a communicator and a stream of its own. Values are float32. A rank that has no
 * memory for a buffer or for sums of gradients gives up: its call is RONDO_ERROR_MEMORY, those of
 * the others are RONDO_ERROR_ABORTED at once, and all can only close.
 */
typedef struct rondo_shards rondo_shards;

enum {
    RONDO_SHARD_OPTIMIZER = 1,
    RONDO_SHARD_GRADIENTS = 2,
    RONDO_SHARD_PARAMETERS = 3,
    RONDO_STATES_MAX = 4
};

typedef struct rondo_shards_config {
    size_t struct_size; /* sizeof(rondo_shards_config) */
    int level;
    int states; /* arrays of optimizer state per parameter: 2 for AdamW; 0 .. RONDO_STATES_MAX */
    rondo_ddp_average average; /* a pass is a call of reduce */
    int check_nan; /* 1: clip and step fail, on every rank, when a rank gave a gradient that is no
                      number; the sentence names rank and parameter */
} rondo_shards_config;

typedef struct rondo_parameter_spec {
    const char *name;
    size_t count;        /* may be 0 */
    const float *values; /* at the start; those of rank 0 count, others may give NULL */
} rondo_parameter_spec;

/* Collective. */
RONDO_API rondo_result rondo_shards_open(const rondo_shards_config *config, rondo_comm *comm,
                                         rondo_shards **ret_shards);
RONDO_API void rondo_shards_close(rondo_shards *shards); /* accepts NULL */
/* Collective, before the first gather. Units are numbered in order, from 0; so are the parameters
 * of each. `values` may be freed afterwards. */
RONDO_API rondo_result rondo_shards_add_unit(rondo_shards *shards,
                                             const rondo_parameter_spec *parameters, size_t count);

/* Begin to bring a unit's parameters here; returns at once. */
RONDO_API rondo_result rondo_shards_prefetch(rondo_shards *shards, int unit);
/* Wait until they are here. */
RONDO_API rondo_result rondo_shards_gather(rondo_shards *shards, int unit);
/* Local: a parameter of a unit that is here, aligned to 64 bytes; good until release or step. */
RONDO_API rondo_result rondo_shards_parameter(rondo_shards *shards, int unit, int parameter,
                                              const float **ret_values);
/* Local: the unit is not needed for now. */
RONDO_API rondo_result rondo_shards_release(rondo_shards *shards, int unit);
/* Local: where to add a parameter's gradient; zero at first, good until reduce. */
RONDO_API rondo_result rondo_shards_gradient(rondo_shards *shards, int unit, int parameter,
                                             float **ret_gradients);
/*
 * The unit's gradients of this pass are complete: sum them up over ranks in the background. Passes
 * before a step add up as a balanced tree. When pass p of rank r of n is micro-batch p * n + r, and
 * n a power of two, the whole is the tree over micro-batches of RONDO_DDP_TREE, with the same bits.
 */
RONDO_API rondo_result rondo_shards_reduce(rondo_shards *shards, int unit);

/* Wait for all reductions, then as rondo_clip() over the whole model; limit 0 only measures. */
RONDO_API rondo_result rondo_shards_clip(rondo_shards *shards, double limit, double *ret_norm);

/* A piece of this rank's shard that lies in one parameter. */
typedef struct rondo_update {
    int unit, parameter;
    size_t first, count; /* which elements of the parameter */
    float *values;
    const float *gradients;
    float *states[RONDO_STATES_MAX]; /* zero before the first step */
} rondo_update;
typedef void (*rondo_update_function)(void *context, const rondo_update *update);
/* Wait for all reductions; call `update` for every piece, in order; forget the gradients; begin to
 * send the new parameters around where they are whole. `update` NULL: leave out this step. */
RONDO_API rondo_result rondo_shards_step(rondo_shards *shards, rondo_update_function update,
                                         void *context);

/* For checkpoints: a whole parameter (`state` -1) or one of its states (0 ..) out of all shards,
 * on every rank; and back into them, local. */
RONDO_API rondo_result rondo_shards_export(rondo_shards *shards, int unit, int parameter, int state,
                                           float *ret_values);
RONDO_API rondo_result rondo_shards_import(rondo_shards *shards, int unit, int parameter, int state,
                                           const float *values);

/* Bytes on this rank. */
typedef struct rondo_shards_memory {
    size_t parameters; /* held all the time */
    size_t gradients;  /* held all the time */
    size_t states;
    size_t passing; /* most ever in use at a time by units that were whole for a while */
    size_t without; /* what parameters, gradients and states take when nothing is cut */
} rondo_shards_memory;
RONDO_API rondo_result rondo_shards_memory_used(const rondo_shards *shards,
                                                rondo_shards_memory *ret_memory);

#ifdef __cplusplus
}
#endif
#endif
