/* SPDX-License-Identifier: BSD-3-Clause */
/* blas.h - matrix products by BLAS, on one thread: ranks share the machine, threads do not. */
#ifndef RONDO_TRAIN_MODEL_BLAS_H
#define RONDO_TRAIN_MODEL_BLAS_H

#include "train/model/real.h"

#include <stdbool.h>

/* `rows` x `columns` as stored, row after row, each `stride` elements after the one before. */
struct matrix {
    real *data;
    int rows, columns, stride;
    bool transposed; /* as an operand: seen with rows and columns exchanged */
};

static inline struct matrix matrix_of(const real *data, int rows, int columns, int stride)
{
    return (struct matrix){(real *)(uintptr_t)data, rows, columns, stride, false};
}

static inline struct matrix matrix_transpose(struct matrix matrix)
{
    matrix.transposed = !matrix.transposed;
    return matrix;
}

/* c = scale * a b + keep * c */
void blas_multiply(struct matrix a, struct matrix b, real scale, real keep, struct matrix c);
/* Once, before the first product. */
void blas_use_one_thread(void);

#endif
