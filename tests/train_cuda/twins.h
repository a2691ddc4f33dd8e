/* SPDX-License-Identifier: BSD-3-Clause */
/* twins.h - arrays that are in memory of the host and of the device, to be compared. */
#ifndef RONDO_TESTS_TRAIN_CUDA_TWINS_H
#define RONDO_TESTS_TRAIN_CUDA_TWINS_H

#include "train/cuda/gpu.h"

/* The first index is of the host, the other of the device. */
enum { HERE, THERE, SIDES };

struct twins {
    float *at[SIDES];
    size_t count;
};

/* The two arithmetics, by side. */
extern const struct arithmetic *const sides[SIDES];

/* The device becomes current. False: said() knows why. */
bool twins_begin(void);
/* Gives back all memory of twins, and the device. */
void twins_end(void);

/* Makes the same numbers from -1 to 1 on both sides. */
struct twins twins_of(size_t count, unsigned seed);
struct twins twins_of_whole(size_t count, unsigned seed, int most); /* ints, 0 .. most - 1 */
/* The largest difference, as a part of 1 or of the number where that is larger; waits. */
double twins_difference(const struct twins *twins);

/* Parameters of a layer, one for each side. */
void twins_parameter(size_t count, unsigned seed, struct parameter *ret_parameters);
/* Compares the gradient as twins_difference() does the values. */
double twins_gradient(const struct parameter *parameters);

#endif
