/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quad.h - 8-bit floats in vectors, for quad_avx2.h, quad_avx512.h and quad_neon.h.
 *
 * Rounding a size a, not above the largest number, to the format: with e the exponent of a, or that
 * of the smallest normal number if it is larger, and
 *
 *     base = 2^(e + 23 - mantissa)
 *
 * the processor rounds a + base to nearest even where the format does, below its normal numbers,
 * too; the lower bits of the sum are then n = a / 2^(e - mantissa), and the code is n + (e - lowest
 * e) * 2^mantissa, also when n was rounded up to the next power of two. With that second term in
 * the lower bits of base, the lowest byte of the sum is the code. Infinities and NaNs are rare:
 * who meets one goes by narrow.inc.
 */
#ifndef RONDO_KERNELS_QUAD_H
#define RONDO_KERNELS_QUAD_H

#include "kernels/vector.h"

typedef struct {
    f32_v a, b, c, d;
} quad_v;

/* The exponent of float32 that the smallest normal number has. */
#define QUAD_LOWEST(mantissa) ((mantissa) == 3 ? 121 : 113)
/* float32 of the largest number: 448 or 57344. */
#define QUAD_MOST(mantissa) ((mantissa) == 3 ? 0x43e00000 : 0x47600000)
#define QUAD_INFINITE       0x7f800000

#endif
