/* SPDX-License-Identifier: BSD-3-Clause */
/* linear.c - y = x W + b. The products are BLAS's, which is where nearly all the time goes. */
#include "train/model/layers.h"

#include "train/model/blas.h"

/* Writes what the product is then added to: the bias, and the residual if there is one. */
REAL_VECTOR static void begin_rows(const struct linear *layer, int rows, const real *residual,
                                   real *y)
{
    const real *bias = layer->bias->value;
    size_t out = (size_t)layer->out;

    for (size_t row = 0; row < (size_t)rows; row++)
        for (size_t i = 0; i < out; i++)
            y[row * out + i] = residual ? residual[row * out + i] + bias[i] : bias[i];
}

REAL_VECTOR static void add_rows(int rows, int width, const real *from, real *to)
{
    for (size_t row = 0; row < (size_t)rows; row++)
        for (size_t i = 0; i < (size_t)width; i++)
            to[i] += from[row * (size_t)width + i];
}

void linear_forward(const struct linear *layer, int rows, const real *x, const real *residual,
                    real *y)
{
    int in = layer->in;
    int out = layer->out;

    begin_rows(layer, rows, residual, y);
    blas_multiply(matrix_of(x, rows, in, in), matrix_of(layer->weight->value, in, out, out), 1, 1,
                  matrix_of(y, rows, out, out));
}

void linear_backward(const struct linear *layer, int rows, const real *x, const real *dy, real *dx)
{
    int in = layer->in;
    int out = layer->out;
    struct matrix given = matrix_of(dy, rows, out, out);

    blas_multiply(matrix_transpose(matrix_of(x, rows, in, in)), given, 1, 1,
                  matrix_of(layer->weight->gradient, in, out, out));
    add_rows(rows, out, dy, layer->bias->gradient);
    if (dx)
        blas_multiply(given, matrix_transpose(matrix_of(layer->weight->value, in, out, out)), 1, 0,
                      matrix_of(dx, rows, in, in));
}
