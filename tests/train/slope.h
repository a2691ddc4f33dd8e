/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slope.h - is a gradient right? Each element is moved a little to both sides, and the loss is
 * looked at: in float64 the difference agrees with a right gradient in seven digits.
 */
#ifndef RONDO_TESTS_TRAIN_SLOPE_H
#define RONDO_TESTS_TRAIN_SLOPE_H

#include "train/model/real.h"

#include <stddef.h>

struct slope {
    real (*loss)(void *context); /* of the values as they are now */
    void *context;
};

/* The largest |difference - gradient| / (largest |gradient| + 1e-3) over all elements. */
double slope_error(const struct slope *slope, size_t count, real *values, const real *gradient);

#define SLOPE_TOLERANCE 1e-7

/* Fills in numbers between -1 and 1, the same in every run. */
void slope_fill(size_t count, real *values, unsigned seed);

#endif
