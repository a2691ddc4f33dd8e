/* SPDX-License-Identifier: BSD-3-Clause */
/* model_parts.h - inside the model: its layers, and the activations kept for the backward pass. */
#ifndef RONDO_TRAIN_MODEL_MODEL_PARTS_H
#define RONDO_TRAIN_MODEL_MODEL_PARTS_H

#include "train/model/model.h"

enum { MODEL_WIDER = 4 }; /* how much wider the MLP is inside */

struct block {
    struct norm norm1, norm2;
    struct linear query, project; /* query: and key, and value */
    struct attention attention;
    struct linear widen, narrow;
    /* Activations, in the order in which they come to be. */
    real *x, *normed1, *statistics1, *qkv, *weights, *attended;
    real *middle, *normed2, *statistics2, *wide, *active;
};

struct model_parts {
    struct embedding embedding;
    struct block *blocks;
    struct norm norm;
    struct linear head;
    real *x, *normed, *statistics; /* of the head; x is the last block's output */
    real *d_x, *d_normed, *d_qkv, *d_wide, *d_weights; /* gradients, used again by each block */
    int *tokens, *targets;                             /* the batch */
    real *arena;
};

#endif
