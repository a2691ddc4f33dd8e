/* SPDX-License-Identifier: BSD-3-Clause */
/* loss.c - how surprised the model is by the right token: softmax and cross-entropy. */
#include "train/model/layers.h"

/* The row becomes probabilities; returns where it was largest. */
REAL_VECTOR static int softmax(int width, real *row)
{
    real most = row[0];
    real sum = 0;
    int best = 0;

    for (int i = 1; i < width; i++)
        if (row[i] > most) {
            most = row[i];
            best = i;
        }
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < width; i++) {
        row[i] = real_exp(row[i] - most);
        sum += row[i];
    }
    for (int i = 0; i < width; i++)
        row[i] /= sum;
    return best;
}

/* Adds the row's loss to `sum`; true if the most probable token was the right one. */
static bool row_loss(int width, int target, real scale, real *row, double *sum)
{
    int best = softmax(width, row);
    double probability = (double)row[target];

    *sum -= log(probability > 1e-30 ? probability : 1e-30);
    row[target] -= 1;
    for (int i = 0; i < width; i++)
        row[i] *= scale;
    return best == target;
}

void loss_of(int width, int length, int rows, const int *targets, real scale, real *logits,
             struct loss *ret_loss)
{
    struct loss loss = {0};

    for (int first = 0; first < rows; first += length) {
        bool complete = true;

        for (int row = first; row < first + length; row++, logits += width) {
            bool right;

            if (targets[row] == LOSS_IGNORED) {
                memset(logits, 0, (size_t)width * sizeof(*logits));
                continue;
            }
            right = row_loss(width, targets[row], scale, logits, &loss.sum);
            loss.counted++;
            loss.right += right;
            complete = complete && right;
        }
        loss.complete += complete;
    }
    *ret_loss = loss;
}
