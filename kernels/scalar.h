/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scalar.h - the arithmetic of ops.inc on single elements: names end in _1. The plain level, tails
 * of the others.
 */
#ifndef RONDO_KERNELS_SCALAR_H
#define RONDO_KERNELS_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b)       JOIN_AGAIN(a, b)
#define ALWAYS_INLINE    static inline __attribute__((always_inline))

typedef int8_t i8_1;
typedef uint8_t u8_1;
typedef int16_t i16_1;
typedef uint16_t u16_1;
typedef int32_t i32_1;
typedef uint32_t u32_1;
typedef int64_t i64_1;
typedef uint64_t u64_1;
typedef float f32_1;
typedef double f64_1;
typedef uint16_t part16_1; /* as many 16-bit elements as a vector has of 32 bits */
typedef uint8_t part8_1;

/* `bytes` of the `full` ones of a vector; a single element is always whole. */
ALWAYS_INLINE void bytes_load_1(void *to, const void *from, size_t bytes, size_t full)
{
    (void)bytes;
    memcpy(to, from, full);
}

ALWAYS_INLINE void bytes_store_1(void *to, const void *from, size_t bytes, size_t full)
{
    (void)bytes;
    memcpy(to, from, full);
}

#define N(name)               JOIN(name, _1)
#define MASK(type, condition) ((type)(0 - (type)(condition)))
#define PRODUCT(type, a, b)   ((type)((uint64_t)(a) * (uint64_t)(b)))
#define CONVERT(value, type)  ((type)(value))
#define BITCAST_FUNCTIONS
#include "kernels/templates/ops.inc"
#undef BITCAST_FUNCTIONS
#undef CONVERT
#undef PRODUCT
#undef MASK
#undef N

#endif
