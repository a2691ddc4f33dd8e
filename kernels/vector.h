/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vector.h - the types of a vector level: names end in _v. VECTOR_BYTES is the width of its
 * registers.
 *
 * These are the vectors of GCC and Clang: operators work element by element, so ops.inc needs no
 * intrinsics.
 */
#ifndef RONDO_KERNELS_VECTOR_H
#define RONDO_KERNELS_VECTOR_H

#include "kernels/scalar.h"

#define VECTOR(bytes) __attribute__((vector_size(bytes)))

typedef int8_t i8_v VECTOR(VECTOR_BYTES);
typedef uint8_t u8_v VECTOR(VECTOR_BYTES);
typedef int16_t i16_v VECTOR(VECTOR_BYTES);
typedef uint16_t u16_v VECTOR(VECTOR_BYTES);
typedef int32_t i32_v VECTOR(VECTOR_BYTES);
typedef uint32_t u32_v VECTOR(VECTOR_BYTES);
typedef int64_t i64_v VECTOR(VECTOR_BYTES);
typedef uint64_t u64_v VECTOR(VECTOR_BYTES);
typedef float f32_v VECTOR(VECTOR_BYTES);
typedef double f64_v VECTOR(VECTOR_BYTES);
typedef uint16_t part16_v VECTOR(VECTOR_BYTES / 2);
typedef uint8_t part8_v VECTOR(VECTOR_BYTES / 4);

#define MASK(type, condition) ((type)(condition))
#define PRODUCT(type, a, b)   ((a) * (b))
#define CONVERT(value, type)  __builtin_convertvector(value, type)
#define BITCAST_FUNCTIONS
#define V(name) JOIN(name, _v)

#endif
