/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch_norm.c - batch normalisation over the batches of all ranks.
 *
 * One all-reduce in each direction, of two numbers per channel. With N elements per channel over
 * all ranks, x' = (x - mean) / deviation and g = dy:
 *
 *     forward    all-reduce of sum x, sum x^2, N       mean, variance
 *     backward   all-reduce of sum g, sum g x'         dx = weight / deviation *
 *                                                           (g - mean(g) - x' * mean(g x'))
 *
 * Sums are kept in double: the square of a float is exact in it, so the difference of two large
 * sums still has the variance's digits.
 */
#include "ddp/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rondo_batch_norm {
    rondo_comm *comm;
    rondo_batch_norm_layer layer;
    double *sums;        /* [2 * channels + 1] */
    float *mean, *scale; /* [channels]: of the last forward; scale = 1 / deviation */
    const float *x;      /* of the last forward; NULL: there was none */
    size_t batch, inner;
    double elements; /* per channel, of all ranks */
};

static rondo_result check_layer(const rondo_batch_norm_layer *layer)
{
    const char *wrong = NULL;

    if (!layer->channels)
        wrong = "it has no channels";
    else if (!(layer->epsilon > 0))
        wrong = "epsilon is not above zero";
    else if (!(layer->momentum >= 0 && layer->momentum <= 1))
        wrong = "momentum is not in 0 to 1";
    else if (!layer->running_mean != !layer->running_variance)
        wrong = "running mean and variance go together";
    return wrong ? ddp_fail(RONDO_ERROR_INVALID, "rondo_batch_norm_open: %s.", wrong) : RONDO_OK;
}

rondo_result rondo_batch_norm_open(rondo_comm *comm, const rondo_batch_norm_layer *layer,
                                   rondo_batch_norm **ret_norm)
{
    rondo_batch_norm *norm;
    rondo_result result;

    if (!comm || !layer || !ret_norm)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_batch_norm_open: needs a communicator, a layer and a place.");
    result = check_layer(layer);
    if (result)
        return result;
    norm = calloc(1, sizeof(*norm));
    if (norm) {
        norm->comm = comm;
        norm->layer = *layer;
        norm->sums = calloc(2 * layer->channels + 1, sizeof(*norm->sums));
        norm->mean = calloc(layer->channels, sizeof(*norm->mean));
        norm->scale = calloc(layer->channels, sizeof(*norm->scale));
    }
    if (!norm || !norm->sums || !norm->mean || !norm->scale) {
        rondo_batch_norm_close(norm);
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for %zu channels.", layer->channels);
    }
    *ret_norm = norm;
    return RONDO_OK;
}

void rondo_batch_norm_close(rondo_batch_norm *norm)
{
    if (!norm)
        return;
    free(norm->sums);
    free(norm->mean);
    free(norm->scale);
    free(norm);
}

/* ---- Forward --------------------------------------------------------------------------------- */

static void sum_x(rondo_batch_norm *norm)
{
    size_t channels = norm->layer.channels;

    memset(norm->sums, 0, (2 * channels + 1) * sizeof(*norm->sums));
    for (size_t row = 0; row < norm->batch * channels; row++) {
        const float *x = norm->x + row * norm->inner;
        double sum = 0, squares = 0;

        for (size_t i = 0; i < norm->inner; i++) {
            sum += x[i];
            squares += (double)x[i] * x[i];
        }
        norm->sums[row % channels] += sum;
        norm->sums[channels + row % channels] += squares;
    }
    norm->sums[2 * channels] = (double)norm->batch * (double)norm->inner;
}

static void keep_running(rondo_batch_norm *norm, size_t channel, double mean, double variance)
{
    const rondo_batch_norm_layer *layer = &norm->layer;
    double unbiased = norm->elements > 1 ? variance * norm->elements / (norm->elements - 1) : 0;
    double m = layer->momentum;

    if (!layer->running_mean)
        return;
    layer->running_mean[channel] = (float)((1 - m) * layer->running_mean[channel] + m * mean);
    layer->running_variance[channel] =
        (float)((1 - m) * layer->running_variance[channel] + m * unbiased);
}

/* y = x times a factor of the channel plus an offset of it. */
static void apply(const rondo_batch_norm *norm, const float *x, float *y, const float *mean,
                  const float *scale)
{
    const rondo_batch_norm_layer *layer = &norm->layer;

    for (size_t row = 0; row < norm->batch * layer->channels; row++) {
        size_t c = row % layer->channels, at = row * norm->inner;
        float factor = scale[c] * (layer->weight ? layer->weight[c] : 1);
        float offset = layer->bias ? layer->bias[c] : 0;

        for (size_t i = 0; i < norm->inner; i++)
            y[at + i] = (x[at + i] - mean[c]) * factor + offset;
    }
}

rondo_result rondo_batch_norm_forward(rondo_batch_norm *norm, const float *x, float *y,
                                      size_t batch, size_t inner)
{
    size_t channels;
    rondo_result result;

    if (!norm || (batch && inner && (!x || !y)))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_batch_norm_forward: needs a layer, x and y.");
    result = ddp_check_call(norm, "rondo_batch_norm_forward");
    if (result)
        return result;
    channels = norm->layer.channels;
    norm->x = x;
    norm->batch = batch;
    norm->inner = inner;
    sum_x(norm);
    result = rondo_all_reduce(norm->sums, norm->sums, 2 * channels + 1, RONDO_FLOAT64, RONDO_SUM,
                              norm->comm, NULL);
    if (result)
        return ddp_fail_call(result, norm->comm, "rondo_batch_norm_forward");
    norm->elements = norm->sums[2 * channels];
    if (!(norm->elements > 0))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_batch_norm_forward: the batches of all ranks are empty.");
    for (size_t c = 0; c < channels; c++) {
        double mean = norm->sums[c] / norm->elements;
        double variance = norm->sums[channels + c] / norm->elements - mean * mean;

        variance = variance > 0 ? variance : 0;
        norm->mean[c] = (float)mean;
        norm->scale[c] = (float)(1 / sqrt(variance + (double)norm->layer.epsilon));
        keep_running(norm, c, mean, variance);
    }
    apply(norm, x, y, norm->mean, norm->scale);
    return RONDO_OK;
}

rondo_result rondo_batch_norm_evaluate(rondo_batch_norm *norm, const float *x, float *y,
                                       size_t batch, size_t inner)
{
    const rondo_batch_norm_layer *layer;

    if (!norm || (batch && inner && (!x || !y)))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_batch_norm_evaluate: needs a layer, x and y.");
    layer = &norm->layer;
    if (!layer->running_mean)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_batch_norm_evaluate: the layer keeps no running mean and variance.");
    norm->x = NULL;
    norm->batch = batch;
    norm->inner = inner;
    for (size_t c = 0; c < layer->channels; c++)
        norm->scale[c] = 1 / sqrtf(layer->running_variance[c] + layer->epsilon);
    apply(norm, x, y, layer->running_mean, norm->scale);
    return RONDO_OK;
}

/* ---- Backward -------------------------------------------------------------------------------- */

static void sum_dy(rondo_batch_norm *norm, const float *dy)
{
    size_t channels = norm->layer.channels;

    memset(norm->sums, 0, 2 * channels * sizeof(*norm->sums));
    for (size_t row = 0; row < norm->batch * channels; row++) {
        size_t c = row % channels, at = row * norm->inner;
        double sum = 0, products = 0;

        for (size_t i = 0; i < norm->inner; i++) {
            sum += dy[at + i];
            products += (double)dy[at + i] * ((norm->x[at + i] - norm->mean[c]) * norm->scale[c]);
        }
        norm->sums[c] += sum;
        norm->sums[channels + c] += products;
    }
}

static void write_dx(const rondo_batch_norm *norm, const float *dy, float *dx)
{
    size_t channels = norm->layer.channels;

    for (size_t row = 0; row < norm->batch * channels; row++) {
        size_t c = row % channels, at = row * norm->inner;
        float factor = norm->scale[c] * (norm->layer.weight ? norm->layer.weight[c] : 1);
        float mean_dy = (float)(norm->sums[c] / norm->elements);
        float mean_product = (float)(norm->sums[channels + c] / norm->elements);

        for (size_t i = 0; i < norm->inner; i++) {
            float normal = (norm->x[at + i] - norm->mean[c]) * norm->scale[c];

            dx[at + i] = factor * (dy[at + i] - mean_dy - normal * mean_product);
        }
    }
}

rondo_result rondo_batch_norm_backward(rondo_batch_norm *norm, const float *dy, float *dx,
                                       float *dweight, float *dbias)
{
    size_t channels;
    rondo_result result;

    if (!norm || (norm->batch && norm->inner && (!norm->x || !dy || !dx)))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_batch_norm_backward: needs dy, dx and a forward before it.");
    result = ddp_check_call(norm, "rondo_batch_norm_backward");
    if (result)
        return result;
    channels = norm->layer.channels;
    sum_dy(norm, dy);
    for (size_t c = 0; c < channels; c++) {
        if (dbias)
            dbias[c] += (float)norm->sums[c];
        if (dweight)
            dweight[c] += (float)norm->sums[channels + c];
    }
    result = rondo_all_reduce(norm->sums, norm->sums, 2 * channels, RONDO_FLOAT64, RONDO_SUM,
                              norm->comm, NULL);
    if (result)
        return ddp_fail_call(result, norm->comm, "rondo_batch_norm_backward");
    write_dx(norm, dy, dx);
    return RONDO_OK;
}
