/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attention.c - causal multi-head attention.
 *
 * Per sequence and head, with queries Q, keys K and values V of length x (width / heads):
 *
 *     P = softmax of each row of Q K' / sqrt(width / heads), up to the diagonal
 *     y = P V
 *
 * and back: dV = P' dy, dP = dy V', dS = P * (dP - sum over the row of dP * P), dQ = dS K,
 * dK = dS' Q, both scaled like S. The products are small; BLAS takes them out of the rows of `qkv`.
 */
#include "train/model/layers.h"

#include "train/model/blas.h"

/* Row i keeps its first i + 1 values; what would be the future becomes 0. */
REAL_VECTOR static void softmax_rows(int length, real *weights)
{
    for (int row = 0; row < length; row++, weights += length) {
        real most = weights[0];
        real sum = 0;

#pragma omp simd reduction(max : most)
        for (int i = 0; i <= row; i++)
            most = weights[i] > most ? weights[i] : most;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i <= row; i++) {
            weights[i] = real_exp(weights[i] - most);
            sum += weights[i];
        }
        sum = 1 / sum;
        for (int i = 0; i <= row; i++)
            weights[i] *= sum;
        for (int i = row + 1; i < length; i++)
            weights[i] = 0;
    }
}

/* From the gradient of the weights to that of the products, in place. */
REAL_VECTOR static void softmax_rows_backward(int length, const real *weights, real *gradient)
{
    for (int row = 0; row < length; row++, weights += length, gradient += length) {
        real sum = 0;

#pragma omp simd reduction(+ : sum)
        for (int i = 0; i <= row; i++)
            sum += gradient[i] * weights[i];
        for (int i = 0; i < length; i++)
            gradient[i] = weights[i] * (gradient[i] - sum);
    }
}

/* Part `part` (0 queries, 1 keys, 2 values) of one head of one sequence. */
static struct matrix part_of(const struct attention *layer, const real *qkv, int head, int part)
{
    int wide = layer->width / layer->heads;

    return matrix_of(qkv + part * layer->width + head * wide, layer->length, wide,
                     3 * layer->width);
}

static real scale_of(const struct attention *layer)
{
    return 1 / real_root((real)(layer->width / layer->heads));
}

void attention_forward(const struct attention *layer, int sequences, const real *qkv, real *weights,
                       real *y)
{
    int length = layer->length;
    int wide = layer->width / layer->heads;

    for (int sequence = 0; sequence < sequences; sequence++) {
        const real *rows = qkv + (size_t)sequence * (size_t)length * 3 * (size_t)layer->width;
        real *out = y + (size_t)sequence * (size_t)length * (size_t)layer->width;

        for (int head = 0; head < layer->heads; head++, weights += length * length) {
            struct matrix at = matrix_of(weights, length, length, length);

            blas_multiply(part_of(layer, rows, head, 0),
                          matrix_transpose(part_of(layer, rows, head, 1)), scale_of(layer), 0, at);
            softmax_rows(length, weights);
            blas_multiply(at, part_of(layer, rows, head, 2), 1, 0,
                          matrix_of(out + head * wide, length, wide, layer->width));
        }
    }
}

static void head_backward(const struct attention *layer, int head, struct attention_saved saved,
                          struct matrix dy, real *dqkv)
{
    int length = layer->length;
    struct matrix at = matrix_of(saved.weights, length, length, length);
    struct matrix d_at = matrix_of(saved.scratch, length, length, length);

    blas_multiply(matrix_transpose(at), dy, 1, 0, part_of(layer, dqkv, head, 2));
    blas_multiply(dy, matrix_transpose(part_of(layer, saved.qkv, head, 2)), 1, 0, d_at);
    softmax_rows_backward(length, saved.weights, saved.scratch);
    blas_multiply(d_at, part_of(layer, saved.qkv, head, 1), scale_of(layer), 0,
                  part_of(layer, dqkv, head, 0));
    blas_multiply(matrix_transpose(d_at), part_of(layer, saved.qkv, head, 0), scale_of(layer), 0,
                  part_of(layer, dqkv, head, 1));
}

void attention_backward(const struct attention *layer, int sequences, struct attention_saved saved,
                        const real *dy, real *dqkv)
{
    size_t rows = (size_t)layer->length;
    size_t width = (size_t)layer->width;
    int wide = layer->width / layer->heads;

    for (int sequence = 0; sequence < sequences; sequence++) {
        for (int head = 0; head < layer->heads; head++) {
            struct matrix given = matrix_of(dy + head * wide, layer->length, wide, layer->width);

            head_backward(layer, head, saved, given, dqkv);
            saved.weights += rows * rows;
        }
        saved.qkv += 3 * rows * width;
        dqkv += 3 * rows * width;
        dy += rows * width;
    }
}
