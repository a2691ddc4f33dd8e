/* SPDX-License-Identifier: BSD-3-Clause */
/* bits.h - reductions of random reals, where the order of additions shows in the bits. */
#ifndef RONDO_TESTS_API_VALUES_BITS_H
#define RONDO_TESTS_API_VALUES_BITS_H

#include "tests/world.h"

enum { BITS_KEYS = 256 };

/* Each rank's result, as a hash, by key; in shared memory. 0: that call was refused. */
struct bits {
    uint64_t hash[BITS_KEYS][WORLD_RANKS];
};

/*
 * Makes the same calls twice, by every algorithm; keys: type x algorithm x collective x repetition.
 */
enum { BITS_TYPES = 4, BITS_ALGORITHMS = 16, BITS_REPEATS = 2 };
static inline int bits_key(int type, int algorithm, int repeat)
{
    return (type * BITS_ALGORITHMS + algorithm) * BITS_REPEATS + repeat;
}
rondo_result bits_by_algorithm(rondo_comm *comm, void *argument, char *sentence);

/*
 * For a communicator with `deterministic` set, or on one node: all_reduce, reduce and
 * reduce_scatter, whole and in pieces, give the bits of the balanced tree over ranks, which this
 * computes by itself (float32 and float64).
 */
rondo_result bits_are_the_balanced_tree(rondo_comm *comm, void *argument, char *sentence);

#endif
