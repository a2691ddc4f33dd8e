/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - a small GPT: a decoder-only transformer with pre-norm blocks.
 *
 *     tokens -> embedding -> layers x [ x + attention(norm(x)); x + MLP(norm(x)) ] -> norm -> head
 *
 * The parameters are a table in forward order. Their memory is the caller's: whoever trains decides
 * whether gradients live in buckets or values in shards. Whoever wants to know how far a pass is
 * gives hooks; in a backward pass gradients become ready layer by layer, the last layer first.
 */
#ifndef RONDO_TRAIN_MODEL_MODEL_H
#define RONDO_TRAIN_MODEL_MODEL_H

#include "train/model/arithmetic.h"

struct model_shape {
    int vocabulary;    /* kinds of tokens */
    int length;        /* tokens of a sequence */
    int width;         /* of what a token is represented by; a multiple of heads */
    int heads, layers; /* of attention; blocks */
    int sequences;     /* most in one batch */
};

struct model_batch {
    int sequences;
    const int *tokens;  /* sequences x length */
    const int *targets; /* what follows each, or LOSS_IGNORED; NULL: there is no loss */
};

/* Called during a pass, where not NULL; the first that fails ends it. */
struct model_hooks {
    void *context;
    /* Values (and in a backward pass gradients) of a unit are used from now on. */
    rondo_result (*before_unit)(void *context, int unit, bool backward);
    /* Values and gradients of a unit are not used any more in this pass. */
    rondo_result (*after_unit)(void *context, int unit, bool backward);
    /* This backward pass adds no more to the gradient of that parameter. */
    rondo_result (*gradient_ready)(void *context, int parameter);
};

struct model {
    struct model_shape shape;
    const struct arithmetic *with; /* what computes, on which memory */
    struct parameter *parameters;
    int parameter_count;
    int unit_count;       /* embeddings, one per block, head */
    size_t element_count; /* of all parameters */
    real *logits;         /* of the last forward pass: rows x vocabulary */
    struct model_parts *parts;
};

/* Memory for activations is taken here, for parameters not. NULL: out of memory. */
struct model *model_open(const struct model_shape *shape, const struct arithmetic *with);
void model_close(struct model *model); /* accepts NULL */

/* Write the value that parameter `index` begins with, to `value`, of the host. */
void model_initialize(const struct model *model, int index, uint64_t seed, real *value);

rondo_result model_forward(struct model *model, const struct model_batch *batch,
                           const struct model_hooks *hooks);
/* Computes the worth of the last forward pass, and the gradient of weight * mean loss in the place
 * of the logits. `batch` is that of the pass. The loss is there after model->with->finish(). */
void model_loss(struct model *model, const struct model_batch *batch, real weight,
                struct loss *ret_loss);
/* Adds to all gradients. */
rondo_result model_backward(struct model *model, const struct model_batch *batch,
                            const struct model_hooks *hooks);

#endif
