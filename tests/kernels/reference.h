/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reference.h - what a reduction must give, computed one element at a time in the most obvious way.
 *
 * Floats are exact doubles: a sum, product or quotient of two float32 computed as double and
 * rounded to float32 is rounded as if once (53 >= 2 * 24 + 2 bits). Integers are kept sign- or
 * zero-extended in 64 bits.
 */
#ifndef RONDO_TESTS_KERNELS_REFERENCE_H
#define RONDO_TESTS_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

enum { REFERENCE_SOURCES_MAX = 40 };

/* One element: `result` = sources combined as `call` says (its arrays are not read). */
void reference_element(const struct kernel_op *op, const struct kernel_call *call,
                       const void *const *sources, void *result);

size_t reference_size(rondo_type type);
const char *reference_name(rondo_type type);
bool reference_is_integer(rondo_type type);
bool reference_is_signed(rondo_type type);
/* A repeatable stream of numbers. */
uint64_t reference_random(uint64_t *state);
/* `count` elements: any bits, and often the values at which arithmetic goes wrong. */
void reference_fill(rondo_type type, void *elements, size_t count, uint64_t *state);
/* Small whole numbers, of which sums and products of a few are exact in any type and order. */
void reference_fill_small(rondo_type type, void *elements, size_t count, uint64_t *state);
/* A user function for any type: neither associative nor commutative, it mixes bytes. */
void reference_user(void *context, const void *in, void *inout, size_t count, rondo_type type);

#endif
