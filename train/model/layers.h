/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layers.h - the layers of the transformer, forward and backward; one file each.
 *
 * Activations are matrices of `rows` tokens, row after row. A backward function is given the
 * gradient of its output, adds to the gradients of its parameters, and writes the gradient of its
 * input (norm_backward adds it: there the residual stream's gradient is waiting). Nothing here
 * allocates or knows of ranks. On a GPU the same functions are those of cuda/arithmetic.c.
 */
#ifndef RONDO_TRAIN_MODEL_LAYERS_H
#define RONDO_TRAIN_MODEL_LAYERS_H

#include "train/model/real.h"

#include <stdbool.h>
#include <stddef.h>

enum { PARAMETER_NAME = 48 };

struct parameter {
    char name[PARAMETER_NAME];
    int unit; /* what is gathered and freed together when parameters are sharded */
    size_t count;
    bool decays;            /* by weight decay: matrices do, vectors do not */
    real *value, *gradient; /* not ours; may move between two passes */
};

/* An embedding adds what a token is and where it stands. */
struct embedding {
    int width, length; /* length: tokens of a sequence; row r stands at r % length */
    struct parameter *token, *position;
};

void embedding_forward(const struct embedding *layer, int rows, const int *tokens, real *y);
void embedding_backward(const struct embedding *layer, int rows, const int *tokens, const real *dy);

/* y = x weight + bias (+ residual, if not NULL) */
struct linear {
    int in, out;
    struct parameter *weight, *bias; /* weight: in x out */
};

void linear_forward(const struct linear *layer, int rows, const real *x, const real *residual,
                    real *y);
/* dx may be NULL. */
void linear_backward(const struct linear *layer, int rows, const real *x, const real *dy, real *dx);

/* Each row with mean 0 and variance 1, then times gain, plus shift. */
struct norm {
    int width;
    struct parameter *gain, *shift;
};

struct norm_saved {
    const real *x;
    const real *statistics; /* per row: mean, 1 / deviation */
};

void norm_forward(const struct norm *layer, int rows, const real *x, real *y, real *statistics);
void norm_backward(const struct norm *layer, int rows, struct norm_saved saved, const real *dy,
                   real *dx);

/* Tokens look at themselves and those before them. */
struct attention {
    int width, heads, length;
};

/* In `qkv` each row holds queries, keys and values, `width` of each, head after head. `weights`:
 * length x length per head and sequence. */
void attention_forward(const struct attention *layer, int sequences, const real *qkv, real *weights,
                       real *y);

struct attention_saved {
    const real *qkv, *weights;
    real *scratch; /* length x length per sequence */
};

void attention_backward(const struct attention *layer, int sequences, struct attention_saved saved,
                        const real *dy, real *dqkv);

/* x * Phi(x) with the usual tanh for Phi. */
void gelu_forward(size_t count, const real *x, real *y);
void gelu_backward(size_t count, const real *x, const real *dy, real *dx);

enum { LOSS_IGNORED = -1 };

/* The worth of a batch. */
struct loss {
    double sum;    /* of -log of the probability of the right token */
    long counted;  /* tokens that count */
    long right;    /* ... whose most probable successor was the right one */
    long complete; /* sequences in which all that count were right */
};

/*
 * Softmax and cross-entropy of rows of `width` logits, whose right answers are in `targets`
 * (LOSS_IGNORED: any will do). On return `logits` holds the gradient of scale * sum. `length`: rows
 * of a sequence.
 */
void loss_of(int width, int length, int rows, const int *targets, real scale, real *logits,
             struct loss *ret_loss);

#endif
