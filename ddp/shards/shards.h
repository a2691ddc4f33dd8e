/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shards.h - what the files of sharding share; rondo/train.h says what it is for.
 *
 *     shards.c   open, close, buffers, bytes
 *     unit.c     units: what stays with each
 *     move.c     parameters come and go: prefetch, gather, release
 *     reduce.c   gradients: where they are collected, passes, the tree over them
 *     step.c     clip, step, export, import
 *
 * A unit is one flat array, cut into equal shards; each parameter begins at 64 bytes:
 *
 *     parameter 0 ....| parameter 1 ....| 2 ....|
 *     shard of rank 0       | shard of rank 1        | shard of rank 2     (the rest is padding)
 *
 * Two threads see a buffer: the user's, and the stream's from queuing a call until its event. Every
 * collective call of a unit is queued on one stream, so ranks that make the same calls here make
 * the same calls there.
 */
#ifndef RONDO_DDP_SHARDS_SHARDS_H
#define RONDO_DDP_SHARDS_SHARDS_H

#include "ddp/fail.h"

#include <rondo/train.h>

#include <stdbool.h>

enum {
    SHARDS_ALIGN = 16,  /* floats in 64 bytes */
    SHARDS_LEVELS = 32, /* of the tree over passes */
    SHARDS_PENDING = 2  /* borrowed gradients that are on their way at a time */
};

struct shard_parameter {
    char *name;
    size_t offset, count; /* in the unit */
};

enum shard_place { SHARD_AWAY, SHARD_COMING, SHARD_HERE };

struct shard_unit {
    struct shard_parameter *parameters;
    int count;
    size_t shard; /* elements of one shard */

    float *own;   /* this rank's shard of the parameters; within `whole` if that stays */
    float *whole; /* all parameters; NULL when away */
    enum shard_place place;
    rondo_event *arrival; /* of the parameters */

    float *gradients; /* of this pass, whole; NULL: none yet */
    bool collecting;  /* the caller adds to them, until reduce */
    bool reducing;    /* they belong to the stream */
    rondo_event *reduction;
    float *sums[SHARDS_LEVELS]; /* of passes, this rank's shard; see reduce.c */
    uint64_t passes;
    float *average; /* of the step, one of `sums`; NULL: not known yet */

    float *states[RONDO_STATES_MAX];
};

struct rondo_shards {
    rondo_shards_config config;
    rondo_comm *comm; /* of our own */
    rondo_stream *stream;
    int rank, size;
    struct shard_unit *units;
    int count;

    /* Whole units for a while: buffers as long as the largest unit. */
    size_t buffer_bytes;
    float **buffers; /* those that nobody uses */
    int free_buffers, made_buffers;

    int *pending; /* [count]: units whose gradients are on their way, oldest first */
    int pending_count;

    char problem[DDP_SENTENCE]; /* a gradient of this rank that is no number; "" if none */
};

static inline bool shards_keep_parameters(const rondo_shards *shards)
{
    return shards->config.level < RONDO_SHARD_PARAMETERS;
}

static inline bool shards_keep_gradients(const rondo_shards *shards)
{
    return shards->config.level < RONDO_SHARD_GRADIENTS;
}

static inline size_t shards_whole(const rondo_shards *shards, const struct shard_unit *unit)
{
    return unit->shard * (size_t)shards->size;
}

/* ---- shards.c -------------------------------------------------------------------------------- */

/* The unit of that number, and (if ret_parameter) its parameter, for the public `function`. */
rondo_result shards_find(const char *function, rondo_shards *shards, int unit, int parameter,
                         struct shard_unit **ret_unit, struct shard_parameter **ret_parameter);
/* Refuses a NULL of the caller's of `function`. */
rondo_result shards_need(const char *function, const void *pointer);
/* Zeroed memory that peers can read, so that nothing is staged; never NULL on success. */
rondo_result shards_allocate(size_t floats, float **ret_memory);
/* After an error of this rank in a call that the others make, too: they hear of it, and wait for
 * nothing of this rank any more. Returns `result`; only closing is left, on all ranks. */
rondo_result shards_give_up(rondo_shards *shards, rondo_result result);
/* Does as ddp_fail_call(), and says what it may mean that a rank has given up. */
rondo_result shards_fail_call(rondo_result result, const rondo_comm *comm, const char *what);
/* A buffer as long as the largest unit, for a while; gives up where there is no memory. */
rondo_result shards_borrow(rondo_shards *shards, float **ret_buffer);
void shards_return(rondo_shards *shards, float *buffer);
/* Collective: a rank whose result is an error tells its last sentence to all, and all return that
 * error; of several the lowest rank does. */
rondo_result shards_agree(rondo_comm *comm, rondo_result mine);
/* Collective: is this number the same everywhere? The sentence names the first rank whose number is
 * not rank 0's. */
rondo_result shards_compare(rondo_shards *shards, uint64_t mine, const char *what);
/* After waiting for an event: did what is queued before it succeed? */
rondo_result shards_check(rondo_shards *shards, const char *what);

/* The part of a parameter that lies in this rank's shard. */
struct shard_piece {
    size_t first, count; /* in the parameter */
    size_t at;           /* in the shard */
};
struct shard_piece shards_piece(const rondo_shards *shards, const struct shard_unit *unit,
                                const struct shard_parameter *parameter);

/* ---- unit.c ---------------------------------------------------------------------------------- */

void shards_close_unit(rondo_shards *shards, struct shard_unit *unit);

/* ---- move.c ---------------------------------------------------------------------------------- */

/* Parameters of all units that are not kept are away afterwards. */
rondo_result shards_release_all(rondo_shards *shards);
/* Queue: the shards of `unit`, which are in place, become whole on every rank. */
rondo_result shards_send_around(rondo_shards *shards, struct shard_unit *unit);

/* ---- reduce.c -------------------------------------------------------------------------------- */

/* Wait for all reductions; then each unit has its average, or none if it had no gradients. */
rondo_result shards_finish_reductions(rondo_shards *shards);
/* Begin a new step: forget all gradients, also those of a pass that was not reduced. */
void shards_forget_gradients(rondo_shards *shards);

#endif
