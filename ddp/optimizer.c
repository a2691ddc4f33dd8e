/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * optimizer.c - AdamW and SGD over a range of float32.
 *
 * Each element is computed from its own numbers by the same IEEE operations, whether the compiler
 * uses vectors or not (the build is ISO C, so nothing is contracted to fused operations): any cut
 * of a model into ranges gives the same bits.
 */
#include "rondo/train.h"

#include <math.h>

/* Loshchilov, Hutter: Decoupled weight decay regularization, 2019. Both moments start at zero and
 * are too small at first by the factor 1 - beta^step: the two corrections take that out. */
void rondo_adamw_step(const rondo_adamw *settings, uint64_t step, size_t count, float *values,
                      const float *gradients, float *first, float *second)
{
    float beta1 = settings->beta1, beta2 = settings->beta2;
    float keep = 1 - settings->rate * settings->decay;
    float rate = (float)(settings->rate / (1 - pow(beta1, (double)step)));
    float correction = (float)(1 / sqrt(1 - pow(beta2, (double)step)));
    float epsilon = settings->epsilon;

    for (size_t i = 0; i < count; i++) {
        float gradient = gradients[i];

        first[i] = beta1 * first[i] + (1 - beta1) * gradient;
        second[i] = beta2 * second[i] + (1 - beta2) * (gradient * gradient);
        values[i] = keep * values[i] - rate * first[i] / (sqrtf(second[i]) * correction + epsilon);
    }
}

void rondo_sgd_step(const rondo_sgd *settings, size_t count, float *values, const float *gradients,
                    float *velocity)
{
    for (size_t i = 0; i < count; i++) {
        float change = gradients[i] + settings->decay * values[i];

        if (velocity)
            change = velocity[i] = settings->momentum * velocity[i] + change;
        values[i] -= settings->rate * change;
    }
}
