/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norms.c - synchronised batch normalisation against plain formulas, in double, over the batches of
 * all ranks. Rank r has r images, so that rank 0 has none (alone it has four).
 */
#include "bodies.h"

#include <math.h>
#include <stdlib.h>

enum { CHANNELS = 3, INNER = 5, IMAGE = CHANNELS * INNER, MOST = 8 * IMAGE };

static const float weight[CHANNELS] = {1.5f, -0.5f, 2}, bias[CHANNELS] = {0.25f, 1, -3};
static const float epsilon = 1e-3f, momentum = 0.25f;

static int images_of(int rank, int size)
{
    return size == 1 ? 4 : rank;
}

/* Element of image `image` (counted over all ranks), or of the gradient of its output. */
static float value(int round, int image, int i, bool gradient)
{
    uint64_t hash = world_hash((uint64_t)(round * 100 + image * 2 + gradient), (uint64_t)i);
    float offset = gradient ? 0 : (float)(i / INNER) * 10; /* channels with other means */

    return (float)(hash >> 40) / (float)(1 << 23) - 1 + offset;
}

struct reference {
    double mean[CHANNELS], variance[CHANNELS], dweight[CHANNELS], dbias[CHANNELS];
    double mean_g[CHANNELS], mean_gx[CHANNELS];
    int elements;
};

static double normal(const struct reference *r, int round, int image, int i)
{
    int c = i / INNER;

    return (value(round, image, i, false) - r->mean[c]) / sqrt(r->variance[c] + (double)epsilon);
}

static void compute(struct reference *r, int round, int images)
{
    *r = (struct reference){.elements = images * INNER};
    for (int image = 0; image < images; image++)
        for (int i = 0; i < IMAGE; i++)
            r->mean[i / INNER] += (double)value(round, image, i, false) / r->elements;
    for (int image = 0; image < images; image++)
        for (int i = 0; i < IMAGE; i++) {
            double d = value(round, image, i, false) - r->mean[i / INNER];

            r->variance[i / INNER] += d * d / r->elements;
        }
    for (int image = 0; image < images; image++)
        for (int i = 0; i < IMAGE; i++) {
            r->dbias[i / INNER] += value(round, image, i, true);
            r->dweight[i / INNER] += value(round, image, i, true) * normal(r, round, image, i);
        }
    for (int c = 0; c < CHANNELS; c++) {
        r->mean_g[c] = r->dbias[c] / r->elements;
        r->mean_gx[c] = r->dweight[c] / r->elements;
    }
}

static bool far(double got, double want)
{
    return !(fabs(got - want) <= 2e-4 * (1 + fabs(want)));
}

/* A round works on this. */
struct batch {
    rondo_comm *comm;
    rondo_batch_norm *norm;
    int round, first, images; /* this rank's first image, and how many */
    float x[MOST], y[MOST], dy[MOST], dx[MOST];
    float dweight[CHANNELS], dbias[CHANNELS];
    float running_mean[CHANNELS], running_variance[CHANNELS];
};

static rondo_result forward_and_backward(struct batch *b)
{
    rondo_result result;

    for (int at = 0; at < b->images * IMAGE; at++) {
        b->x[at] = value(b->round, b->first + at / IMAGE, at % IMAGE, false);
        b->dy[at] = value(b->round, b->first + at / IMAGE, at % IMAGE, true);
    }
    for (int c = 0; c < CHANNELS; c++)
        b->dweight[c] = b->dbias[c] = 0;
    result = rondo_batch_norm_forward(b->norm, b->x, b->y, (size_t)b->images, INNER);
    if (!result)
        result = rondo_batch_norm_backward(b->norm, b->dy, b->dx, b->dweight, b->dbias);
    if (!result) /* of all ranks, as a data-parallel step would add them up */
        result = rondo_all_reduce(b->dweight, b->dweight, CHANNELS, RONDO_FLOAT32, RONDO_SUM,
                                  b->comm, NULL);
    if (!result)
        result =
            rondo_all_reduce(b->dbias, b->dbias, CHANNELS, RONDO_FLOAT32, RONDO_SUM, b->comm, NULL);
    return result;
}

static rondo_result check(const struct batch *b, const struct reference *r, char *sentence)
{
    for (int at = 0; at < b->images * IMAGE; at++) {
        int i = at % IMAGE, c = i / INNER, image = b->first + at / IMAGE;
        double x = normal(r, b->round, image, i);
        double y = x * (double)weight[c] + (double)bias[c];
        double dx = (double)weight[c] / sqrt(r->variance[c] + (double)epsilon) *
                    (value(b->round, image, i, true) - r->mean_g[c] - x * r->mean_gx[c]);

        if (far(b->y[at], y) || far(b->dx[at], dx))
            return world_say(sentence, RONDO_ERROR_INTERNAL,
                             "image %d, element %d: y %g, dx %g instead of %g, %g", image, i,
                             (double)b->y[at], (double)b->dx[at], y, dx);
    }
    for (int c = 0; c < CHANNELS; c++)
        if (far(b->dweight[c], r->dweight[c]) || far(b->dbias[c], r->dbias[c]))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "channel %d: gradients %g, %g", c,
                             (double)b->dweight[c], (double)b->dbias[c]);
    return RONDO_OK;
}

static rondo_result check_running(struct batch *b, const double *mean, const double *variance,
                                  char *sentence)
{
    float x[IMAGE], y[IMAGE];
    rondo_result result;

    for (int i = 0; i < IMAGE; i++)
        x[i] = (float)i;
    result = rondo_batch_norm_evaluate(b->norm, x, y, 1, INNER);
    for (int i = 0; i < IMAGE && !result; i++) {
        int c = i / INNER;
        double want = (i - mean[c]) / sqrt(variance[c] + (double)epsilon) * (double)weight[c] +
                      (double)bias[c];

        if (far(b->running_mean[c], mean[c]) || far(b->running_variance[c], variance[c]) ||
            far(y[i], want))
            result =
                world_say(sentence, RONDO_ERROR_INTERNAL,
                          "channel %d: running mean %g, variance %g; evaluated %g", c,
                          (double)b->running_mean[c], (double)b->running_variance[c], (double)y[i]);
    }
    return result;
}

static rondo_result rounds(struct batch *b, char *sentence)
{
    double mean[CHANNELS] = {0}, variance[CHANNELS] = {1, 1, 1}, m = (double)momentum;
    int rank = rondo_comm_rank(b->comm), size = rondo_comm_size(b->comm), images = 0;
    struct reference reference;
    rondo_result result = RONDO_OK;

    for (int r = 0; r < size; r++) {
        b->first = r == rank ? images : b->first;
        images += images_of(r, size);
    }
    b->images = images_of(rank, size);
    for (b->round = 0; b->round < 3 && !result; b->round++) {
        compute(&reference, b->round, images);
        result = forward_and_backward(b);
        if (!result)
            result = check(b, &reference, sentence);
        for (int c = 0; c < CHANNELS; c++) {
            double unbiased = reference.variance[c] * reference.elements / (reference.elements - 1);

            mean[c] = (1 - m) * mean[c] + m * reference.mean[c];
            variance[c] = (1 - m) * variance[c] + m * unbiased;
        }
    }
    return result ? result : check_running(b, mean, variance, sentence);
}

static rondo_result refusals(rondo_comm *comm, struct batch *b, char *sentence)
{
    static float one[CHANNELS];
    const rondo_batch_norm_layer bad[] = {
        {.channels = 0, .epsilon = 1},
        {.channels = 1, .epsilon = 0},
        {.channels = 1, .epsilon = 1, .momentum = 2},
        {.channels = 1, .epsilon = 1, .running_mean = one},
    };
    const rondo_batch_norm_layer plain = {.channels = 1, .epsilon = 1};
    rondo_batch_norm *norm = NULL;
    bool wrong = false;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        wrong = wrong || rondo_batch_norm_open(comm, &bad[i], &norm) != RONDO_ERROR_INVALID;
    if (wrong || rondo_batch_norm_open(comm, NULL, &norm) != RONDO_ERROR_INVALID ||
        rondo_batch_norm_forward(NULL, b->x, b->y, 1, 1) != RONDO_ERROR_INVALID ||
        rondo_batch_norm_forward(b->norm, b->x, b->y, 0, INNER) != RONDO_ERROR_INVALID ||
        rondo_batch_norm_backward(NULL, b->dy, b->dx, NULL, NULL) != RONDO_ERROR_INVALID ||
        rondo_batch_norm_evaluate(NULL, b->x, b->y, 1, 1) != RONDO_ERROR_INVALID)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "a bad argument was taken");
    if (rondo_batch_norm_open(comm, &plain, &norm))
        return RONDO_ERROR_INTERNAL;
    wrong = rondo_batch_norm_evaluate(norm, b->x, b->y, 1, 1) != RONDO_ERROR_INVALID;
    rondo_batch_norm_close(norm);
    return wrong ? world_say(sentence, RONDO_ERROR_INTERNAL, "evaluated without running mean")
                 : RONDO_OK;
}

rondo_result norms_like_one_process(rondo_comm *comm, void *unused, char *sentence)
{
    struct batch *b = calloc(1, sizeof(*b));
    rondo_batch_norm_layer layer = {CHANNELS, weight, bias, NULL, NULL, epsilon, momentum};
    rondo_result result;

    b->comm = comm;
    for (int c = 0; c < CHANNELS; c++)
        b->running_variance[c] = 1;
    layer.running_mean = b->running_mean;
    layer.running_variance = b->running_variance;
    result = rondo_batch_norm_open(comm, &layer, &b->norm);
    if (!result)
        result = rounds(b, sentence);
    if (!result)
        result = refusals(comm, b, sentence);
    if (result)
        world_say(sentence, result, "%s", rondo_ddp_last_error());
    rondo_batch_norm_close(b->norm);
    free(b);
    return result;
}
