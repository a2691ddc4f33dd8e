/* SPDX-License-Identifier: BSD-3-Clause */
/* data_parallel_4.c - more ranks, longer steps, and all of the loss: docs/data_parallel.md. */
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
    rondo_ddp_tensor parameters[] = {
        {"weights", weights, weights_gradient, FEATURES, RONDO_FLOAT32, 0},
        {"bias", &bias, &bias_gradient, 1, RONDO_FLOAT32, 0},
    };
    rondo_ddp_model model = {.parameters = parameters, .parameter_count = 2};
    rondo_ddp *ddp;
    rondo_sampler_config config = {
        .struct_size = sizeof(config), .samples = SAMPLES, .shuffle = 1, .seed = 1};
    rondo_schedule schedule = {.rate = 0.1, .start = 0.1, .warmup = 8};
    uint64_t step = 0;
    rondo_sampler *sampler;
    rondo_comm *comm;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    schedule.ranks = rondo_comm_size(comm);
    config.rank = rondo_comm_rank(comm);
    config.size = rondo_comm_size(comm);
    RONDO_DDP_CHECK(rondo_sampler_open(&config, &sampler));
    RONDO_DDP_CHECK(rondo_ddp_open(comm, &model, NULL, &ddp));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        size_t batch[BATCH], count;
        float loss = 0;

        rondo_sampler_set_epoch(sampler, (uint64_t)epoch);
        while ((count = rondo_sampler_next(sampler, BATCH, batch)) > 0) {
            RONDO_DDP_CHECK(rondo_ddp_begin(ddp, 1));
            for (size_t i = 0; i < count; i++)
                loss += learn_from(batch[i]);
            RONDO_DDP_CHECK(rondo_ddp_gradient_ready(ddp, 1));
            RONDO_DDP_CHECK(rondo_ddp_gradient_ready(ddp, 0));
            RONDO_DDP_CHECK(rondo_ddp_wait(ddp));
            optimize((float)rondo_schedule_rate(&schedule, step++));
        }
        RONDO_CHECK(rondo_all_reduce(&loss, &loss, 1, RONDO_FLOAT32, RONDO_AVG, comm, NULL));
        if (rondo_comm_rank(comm) == 0)
            printf("epoch %d: loss %.4f, last batch from sample %zu\n", epoch,
                   (double)loss / (double)rondo_sampler_count(sampler), batch[0]);
    }
    printf("rank %d: weights %.4f %.4f %.4f\n", rondo_comm_rank(comm), (double)weights[0],
           (double)weights[1], (double)weights[2]);
    rondo_ddp_close(ddp);
    rondo_sampler_close(sampler);
    rondo_comm_close(comm);
    return 0;
}
