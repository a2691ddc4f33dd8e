/* SPDX-License-Identifier: BSD-3-Clause */
/* norm.h - exact sums of squares of float32, in parts that can be added in any order. */
#ifndef RONDO_DDP_NORM_H
#define RONDO_DDP_NORM_H

#include "rondo/train.h"

enum { NORM_EXPONENTS = 256 };

/* Sums of squared significands by exponent field; value = high * 2^32 + low. */
struct norm {
    uint64_t low[NORM_EXPONENTS], high[NORM_EXPONENTS];
};

void norm_init(struct norm *norm);
void norm_add(struct norm *norm, const float *values, size_t count);
/* Collective: the sums of all ranks. */
rondo_result norm_all_reduce(struct norm *norm, rondo_comm *comm);
double norm_root(const struct norm *norm);

/* True if the norm is above the limit; ret_scale is the factor by which elements must shrink
 * then. */
int norm_exceeds(double root, double limit, float *ret_scale);
void norm_scale(float *values, size_t count, float scale);

#endif
