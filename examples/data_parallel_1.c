/* SPDX-License-Identifier: BSD-3-Clause */
/* data_parallel_1.c - the same on every rank: docs/data_parallel.md. */
#include <rondo/check.h>

#include <stdio.h>

enum { SAMPLES = 64, FEATURES = 3, BATCH = 4, EPOCHS = 4 };

static float weights[FEATURES], bias, weights_gradient[FEATURES], bias_gradient;

/* The data: y = x0 + 2 x1 + 3 x2 + 0.5, and a little noise. */
static float sample(size_t number, float *x)
{
    float y = 0.5f + (float)(number * 7 % 13) / 60;

    for (size_t i = 0; i < FEATURES; i++) {
        x[i] = (float)(number * (2 * i + 3) % 11) / 5 - 1;
        y += (float)(i + 1) * x[i];
    }
    return y;
}

/* Forward and backward for one sample: adds to the gradients, returns the loss. */
static float learn_from(size_t number)
{
    float x[FEATURES], error = bias - sample(number, x);

    for (int i = 0; i < FEATURES; i++)
        error += weights[i] * x[i];
    for (int i = 0; i < FEATURES; i++)
        weights_gradient[i] += error * x[i] / BATCH;
    bias_gradient += error / BATCH;
    return error * error / 2;
}

static void optimize(float rate)
{
    for (int i = 0; i < FEATURES; i++) {
        weights[i] -= rate * weights_gradient[i];
        weights_gradient[i] = 0;
    }
    bias -= rate * bias_gradient;
    bias_gradient = 0;
}

int main(void)
{
    rondo_comm *comm;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        float loss = 0;

        for (size_t first = 0; first < SAMPLES; first += BATCH) {
            for (size_t i = 0; i < BATCH; i++)
                loss += learn_from(first + i);
            optimize(0.1f);
        }
        if (rondo_comm_rank(comm) == 0)
            printf("epoch %d: loss %.4f\n", epoch, (double)(loss / SAMPLES));
    }
    printf("rank %d: weights %.4f %.4f %.4f\n", rondo_comm_rank(comm), (double)weights[0],
           (double)weights[1], (double)weights[2]);
    rondo_comm_close(comm);
    return 0;
}
