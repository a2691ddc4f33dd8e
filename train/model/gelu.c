/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gelu.c - the soft switch of the feed-forward layer.
 *
 * (1 + tanh u) / 2 is the logistic function of 2u; so y = x * s with s = 1 / (1 + e^-2u) and
 * 2u = a (x + b x^3).
 */
#include "train/model/layers.h"

static const real a = (real)1.5957691216057308; /* 2 * sqrt(2 / pi) */
static const real b = (real)0.044715;

REAL_VECTOR void gelu_forward(size_t count, const real *x, real *y)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1 + real_exp(-a * (x[i] + b * x[i] * x[i] * x[i])));
}

REAL_VECTOR void gelu_backward(size_t count, const real *x, const real *dy, real *dx)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        real s = 1 / (1 + real_exp(-a * (x[i] + b * x[i] * x[i] * x[i])));
        real slope = a * (1 + 3 * b * x[i] * x[i]);

        dx[i] = dy[i] * (s + x[i] * s * (1 - s) * slope);
    }
}
