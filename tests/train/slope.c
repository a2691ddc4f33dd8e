/* SPDX-License-Identifier: BSD-3-Clause */
/* slope.c - see slope.h. */
#include "tests/train/slope.h"

double slope_error(const struct slope *slope, size_t count, real *values, const real *gradient)
{
    const real step = (real)1e-5;
    double largest = 1e-3;
    double error = 0;

    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)gradient[i]));
    for (size_t i = 0; i < count; i++) {
        real kept = values[i];
        double up, down, off;

        values[i] = kept + step;
        up = (double)slope->loss(slope->context);
        values[i] = kept - step;
        down = (double)slope->loss(slope->context);
        values[i] = kept;
        off = fabs((up - down) / (2 * (double)step) - (double)gradient[i]) / largest;
        error = off > error || off != off ? off : error;
    }
    return error;
}

void slope_fill(size_t count, real *values, unsigned seed)
{
    uint64_t state = seed;

    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (real)((double)(state >> 11) / 4503599627370496.0 - 1);
    }
}
