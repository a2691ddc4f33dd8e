/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - the kernels of the training, and what each is told: one struct by value, of types that
 * have the same size in every compiler. Included by C on the host and by the kernels.
 *
 * Matrices lie row after row. "Rows" kernels take a block per row, "elements" kernels a lane per
 * element; both go on where there are more than fit.
 */
#ifndef RONDO_TRAIN_CUDA_CALLS_H
#define RONDO_TRAIN_CUDA_CALLS_H

#include <stdint.h>

/* clang-format off */
#define TRAIN_KERNELS(use) \
    use(embedding) use(embedding_backward) use(begin_rows) use(sum_columns) use(add_sums) \
    use(norm) use(norm_backward) use(softmax) use(softmax_backward) use(gelu) use(gelu_backward) \
    use(loss_rows) use(loss_total) use(squares) use(root) use(adamw)
/* clang-format on */

enum {
    TRAIN_LANES = 256,       /* most in a block; there are a power of two */
    TRAIN_COLUMN_SUMS = 128, /* parts in which rows are summed up */
    TRAIN_SQUARES = 64,      /* parts of the sum of squares of a parameter */
    TRAIN_IGNORED = -1,      /* a target that any token is right for */
};

/* Rows. */
struct train_embedding {
    const float *token, *position;
    const int *tokens;
    float *y;
    int rows, width, length;
};

/* A block per token of the vocabulary, then one per position: each adds up its own rows in order,
 * so that sums need no atomics and have the same bits in every run. */
struct train_embedding_backward {
    const int *tokens;
    const float *dy;
    float *token, *position;
    int rows, width, length, vocabulary;
};

/* Elements: y = bias (+ residual, if not NULL), where a product is added then. */
struct train_begin_rows {
    const float *bias, *residual;
    float *y;
    uint64_t count;
    int width;
};

/* Block b adds up rows b, b + parts ... of dy into its row of `sums`; with `x` also those of dy
 * times the normalised x into its row of `stretched`. Then elements: to += the sum of all parts. */
struct train_sum_columns {
    const float *dy, *x, *statistics;
    float *sums, *stretched;
    int rows, width;
};
struct train_add_sums {
    const float *sums;
    float *to;
    int parts, width;
};

/* Rows; as norm.c. */
struct train_norm {
    const float *x, *gain, *shift;
    float *y, *statistics;
    int rows, width;
};
struct train_norm_backward {
    const float *x, *gain, *statistics, *dy;
    float *dx;
    int rows, width;
};

/* Rows of weights, the future of each left out; as attention.c. */
struct train_softmax {
    float *weights;
    uint64_t rows;
    int length;
};
struct train_softmax_backward {
    const float *weights; /* of one head */
    float *gradient;
    uint64_t stride; /* of weights, from one sequence to the next */
    int sequences, length;
};

/* Elements. */
struct train_gelu {
    const float *x;
    float *y;
    uint64_t count;
};
struct train_gelu_backward {
    const float *x, *dy;
    float *dx;
    uint64_t count;
};

/* Rows: logits become their gradient; of each row what it was worth. Then one block sums up. */
struct train_row_loss {
    double loss;
    int counted, right;
};
struct train_worth {
    double sum, counted, right, complete;
};
struct train_loss_rows {
    const int *targets;
    float *logits;
    struct train_row_loss *each;
    int rows, width;
    float scale;
};
struct train_loss_total {
    const struct train_row_loss *each;
    struct train_worth *total;
    int rows, length;
};

/* TRAIN_SQUARES blocks, each one part; then one block: the root of the sum of all parts. */
struct train_squares {
    const float *values;
    double *parts;
    uint64_t count;
};
struct train_root {
    const double *parts;
    double *root;
    int count;
};

/* Elements; as rondo_adamw_step(). */
struct train_adamw {
    float *values, *first, *second;
    const float *gradients;
    const double *norm; /* of all gradients: they shrink if it is above the limit */
    double limit;       /* 0: it may be anything */
    uint64_t count;
    float beta1, beta2, epsilon;
    float keep, rate, correction; /* of this step */
};

#endif
