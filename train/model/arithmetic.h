/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arithmetic.h - where a model computes: the layers, and the memory that they work on.
 *
 * model.c knows which layer comes after which, and nothing else; what a layer does is looked up
 * here. On the host (arithmetic_host.c) these are the functions of layers.h, done when they return.
 * On a GPU (cuda/arithmetic.c) all pointers but those marked are of its memory, and functions only
 * queue: what they give is there after finish(), which also says what went wrong since the last
 * one. Like BLAS, a process has one of a kind, so there are no handles.
 */
#ifndef RONDO_TRAIN_MODEL_ARITHMETIC_H
#define RONDO_TRAIN_MODEL_ARITHMETIC_H

#include "train/model/layers.h"

#include "rondo/rondo.h"

struct arithmetic {
    /* Zeroed memory, aligned to 64 bytes. NULL: there is none. */
    void *(*alloc)(size_t bytes);
    void (*release)(void *memory); /* accepts NULL */
    void (*clear)(void *memory, size_t bytes);
    /* From and to memory of the host; `from` of write may change when it returns, and what read
     * gives is there. */
    void (*write)(void *to, const void *from, size_t bytes);
    rondo_result (*read)(void *ret_to, const void *from, size_t bytes);
    rondo_result (*finish)(void);

    /* The layers are those of layers.h; tokens and targets are in memory of this kind, too. */
    void (*embedding_forward)(const struct embedding *layer, int rows, const int *tokens, real *y);
    void (*embedding_backward)(const struct embedding *layer, int rows, const int *tokens,
                               const real *dy);
    void (*linear_forward)(const struct linear *layer, int rows, const real *x,
                           const real *residual, real *y);
    void (*linear_backward)(const struct linear *layer, int rows, const real *x, const real *dy,
                            real *dx);
    void (*norm_forward)(const struct norm *layer, int rows, const real *x, real *y,
                         real *statistics);
    void (*norm_backward)(const struct norm *layer, int rows, struct norm_saved saved,
                          const real *dy, real *dx);
    void (*attention_forward)(const struct attention *layer, int sequences, const real *qkv,
                              real *weights, real *y);
    void (*attention_backward)(const struct attention *layer, int sequences,
                               struct attention_saved saved, const real *dy, real *dqkv);
    void (*gelu_forward)(size_t count, const real *x, real *y);
    void (*gelu_backward)(size_t count, const real *x, const real *dy, real *dx);
    /* *ret_loss is the host's, and there after finish(). */
    void (*loss_of)(int width, int length, int rows, const int *targets, real scale, real *logits,
                    struct loss *ret_loss);
};

extern const struct arithmetic arithmetic_host;

#endif
