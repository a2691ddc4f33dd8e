/* SPDX-License-Identifier: BSD-3-Clause */
/* data_parallel_2.c - each rank takes its own samples: docs/data_parallel.md. */
#include <rondo/check.h>
#include <rondo/train.h>

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
    rondo_sampler_config config = {
        .struct_size = sizeof(config), .samples = SAMPLES, .shuffle = 1, .seed = 1};
    rondo_sampler *sampler;
    rondo_comm *comm;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    config.rank = rondo_comm_rank(comm);
    config.size = rondo_comm_size(comm);
    RONDO_DDP_CHECK(rondo_sampler_open(&config, &sampler));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        size_t batch[BATCH], count;
        float loss = 0;

        rondo_sampler_set_epoch(sampler, (uint64_t)epoch);
        while ((count = rondo_sampler_next(sampler, BATCH, batch)) > 0) {
            for (size_t i = 0; i < count; i++)
                loss += learn_from(batch[i]);
            optimize(0.1f);
        }
        if (rondo_comm_rank(comm) == 0)
            printf("epoch %d: loss %.4f, last batch from sample %zu\n", epoch,
                   (double)loss / (double)rondo_sampler_count(sampler), batch[0]);
    }
    printf("rank %d: weights %.4f %.4f %.4f\n", rondo_comm_rank(comm), (double)weights[0],
           (double)weights[1], (double)weights[2]);
    rondo_sampler_close(sampler);
    rondo_comm_close(comm);
    return 0;
}
