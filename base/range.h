/* SPDX-License-Identifier: BSD-3-Clause */
/* range.h - the one remainder rule: how a count is cut into parts, for any count, also
 * count < parts and 0; and the one rule by which a balanced tree splits. */
#ifndef RONDO_BASE_RANGE_H
#define RONDO_BASE_RANGE_H

#include <stddef.h>

/*
 * Where part `index` of `parts` begins in `count` elements, when boundaries may only lie on
 * multiples of `grain` elements: the first parts take the remainder. index == parts gives `count`,
 * so part i is [start(i), start(i+1)).
 */
static inline size_t range_start(size_t count, size_t grain, unsigned parts, unsigned index)
{
    size_t grains = count / grain + (count % grain != 0);
    size_t each = grains / parts;
    size_t rest = grains % parts;
    size_t start = (each * index + (index < rest ? index : rest)) * grain;

    return start < count ? start : count;
}

/* Returns where a balanced tree over `count` operands splits: the largest power of two below, 1 for
 * 1. */
static inline int range_split(int count)
{
    int split = 1;

    while (split < count - split)
        split *= 2;
    return split;
}

#endif
