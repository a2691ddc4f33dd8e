/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * duel.h - the same reduction by kernel_reduce() on the host and by cuda_reduce() on the device,
 * over the same awkward memory: every byte of it has to come out the same.
 */
#ifndef RONDO_TESTS_CUDA_DUEL_H
#define RONDO_TESTS_CUDA_DUEL_H

#include "cuda/reduce.h"
#include "tests/cuda/gpu.h"

enum duel_place {
    DUEL_ALIGNED,  /* all operands on 16-byte boundaries */
    DUEL_TOGETHER, /* all at the same distance from one, by elements */
    DUEL_APART,    /* each at its own, by elements */
    DUEL_ODD,      /* by bytes */
    DUEL_PLACES
};

struct duel {
    struct kernel_op op;
    int sources, destinations;
    size_t count;
    enum kernel_order order;
    int scaled;
    bool finish, in_place; /* the first destination is the last source */
    enum duel_place place;
    unsigned blocks;
    uint64_t random;
};

/* False: they differ, or the device refused; `complaint` says so. */
bool duel_run(struct gpu *gpu, const struct duel *duel, char *complaint, size_t size);

#endif
