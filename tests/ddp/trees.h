/* SPDX-License-Identifier: BSD-3-Clause */
/* trees.h - micro-batches of a step added up as one tree: what the body is asked to do. */
#ifndef RONDO_TESTS_DDP_TREES_H
#define RONDO_TESTS_DDP_TREES_H

#include "../world.h"

enum { TREES_COUNT = 1500, TREES_BATCHES = 64 };

struct trees {
    int micro_batches;         /* of all ranks together */
    bool own;                  /* the gradient is the test's, else in the bucket */
    float result[TREES_COUNT]; /* of rank 0, after two steps */
};

/* Element i of the gradient of a micro-batch: reals of several magnitudes. */
float trees_real(int micro_batch, size_t i);
/* tree(0, M) / M, computed here. */
void trees_reference(int micro_batches, float *ret_result);

#endif
