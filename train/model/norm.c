/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * norm.c - layer normalisation.
 *
 * With h = (x - mean) / deviation and g = dy * gain, the gradient of a row is
 *
 *     dx = (g - mean(g) - h * mean(g * h)) / deviation
 *
 * : moving or stretching the whole row changes nothing, so both directions are taken out of g.
 */
#include "train/model/layers.h"

static const real epsilon = (real)1e-5; /* keeps a row of equal values finite */

REAL_VECTOR void norm_forward(const struct norm *layer, int rows, const real *x, real *y,
                              real *statistics)
{
    const real *gain = layer->gain->value;
    const real *shift = layer->shift->value;
    int width = layer->width;

    for (int row = 0; row < rows; row++, x += width, y += width) {
        real mean = 0;
        real variance = 0;
        real scale;

#pragma omp simd reduction(+ : mean)
        for (int i = 0; i < width; i++)
            mean += x[i];
        mean /= (real)width;
#pragma omp simd reduction(+ : variance)
        for (int i = 0; i < width; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        scale = 1 / real_root(variance / (real)width + epsilon);
        for (int i = 0; i < width; i++)
            y[i] = (x[i] - mean) * scale * gain[i] + shift[i];
        statistics[2 * row] = mean;
        statistics[2 * row + 1] = scale;
    }
}

REAL_VECTOR void norm_backward(const struct norm *layer, int rows, struct norm_saved saved,
                               const real *dy, real *dx)
{
    const real *gain = layer->gain->value;
    real *d_gain = layer->gain->gradient;
    real *d_shift = layer->shift->gradient;
    const real *x = saved.x;
    int width = layer->width;

    for (int row = 0; row < rows; row++, x += width, dy += width, dx += width) {
        real mean = saved.statistics[2 * row];
        real scale = saved.statistics[2 * row + 1];
        real moved = 0;
        real stretched = 0;

#pragma omp simd reduction(+ : moved, stretched)
        for (int i = 0; i < width; i++) {
            real h = (x[i] - mean) * scale;

            moved += dy[i] * gain[i];
            stretched += dy[i] * gain[i] * h;
        }
        moved /= (real)width;
        stretched /= (real)width;
        for (int i = 0; i < width; i++) {
            real h = (x[i] - mean) * scale;

            d_gain[i] += dy[i] * h;
            d_shift[i] += dy[i];
            dx[i] += (dy[i] * gain[i] - moved - h * stretched) * scale;
        }
    }
}
