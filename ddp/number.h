/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - loops over numbers: 16-bit floats, division, sums, and what is not finite. */
#ifndef RONDO_DDP_NUMBER_H
#define RONDO_DDP_NUMBER_H

#include <rondo/rondo.h>

/* float32 / divisor to float16 or bfloat16 (`type`), to nearest, ties to even; and back. */
void ddp_compress(const float *from, uint16_t *to, size_t count, rondo_type type, float divisor);
void ddp_expand(const uint16_t *from, float *to, size_t count, rondo_type type);

/* The types of gradients: float32, float64, float16, bfloat16. */
void ddp_divide(void *values, size_t count, rondo_type type, double divisor);
/* to = from + to, for float32 and float64. */
void ddp_add(const void *from, void *to, size_t count, rondo_type type);
/* The first element that is NaN or infinite; `count` if all are finite. */
size_t ddp_find_infinite(const void *values, size_t count, rondo_type type);
double ddp_value(const void *values, size_t index, rondo_type type);

#endif
