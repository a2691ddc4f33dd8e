/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.h - data whose result is known bit by bit, in every type, whatever the order of the
 * operation.
 *
 * Element i of rank r is a small integer, so that all sums and products on the way are exact.
 * Values repeat after PATTERN_PERIOD elements, a prime, so that a block that lands in a wrong place
 * does not look right.
 */
#ifndef RONDO_BENCH_PATTERN_H
#define RONDO_BENCH_PATTERN_H

#include "bench/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PATTERN_PERIOD = 4093 };

const char *pattern_type_name(rondo_type type);
size_t pattern_type_bytes(rondo_type type);
/* -1 if there is none of that name. */
int pattern_type_find(const char *name);
const char *pattern_op_name(rondo_op op);
int pattern_op_find(const char *name);
/* Bitwise operations are for integers only. */
bool pattern_op_has_type(rondo_op op, rondo_type type);

/*
 * True if the result of `call` is exact for this many ranks; averages of narrow types may not be.
 */
bool pattern_is_exact(const struct bench_call *call, int size);

/* Write the input that `rank` of `size` has. */
void pattern_fill_input(const struct bench_call *call, int rank, int size, void *input);
/* Counts the elements of the output of `rank` that differ from what `call` should give; 0 where it
 * gives nothing. */
size_t pattern_count_wrong(const struct bench_call *call, int rank, int size, const void *output);

#ifdef __cplusplus
}
#endif
#endif
