/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - what a CPU level is: one table of passes, and the list of types that all tables are
 * made from.
 *
 * A pass combines 2 .. KERNEL_GROUP sources of one type by one function, each element loaded,
 * widened, combined, rounded and stored once. Every level is an instance of the same source:
 * ops.inc (arithmetic on one vector) and pass.inc (the loop), with another width of vector; so the
 * levels give the same bits. tiles.c makes everything else out of passes.
 *
 * Reading order: ops.inc, pass.inc, level.inc, plain.c, avx2.c, reduce.c.
 */
#ifndef RONDO_KERNELS_TABLE_H
#define RONDO_KERNELS_TABLE_H

#include "kernels/kernels.h"

/*
 * Integers:      type, kind, the kind of the same width that wraps, C type
 * Wide floats:   type, kind, C type              are accumulated as they are
 * Narrow floats: type, kind, C type of the bits  are accumulated in float32
 */
#define KERNEL_SIGNED(X)        \
    X(INT8, i8, u8, int8_t)     \
    X(INT16, i16, u16, int16_t) \
    X(INT32, i32, u32, int32_t) \
    X(INT64, i64, u64, int64_t)
#define KERNEL_UNSIGNED(X)        \
    X(UINT8, u8, u8, uint8_t)     \
    X(UINT16, u16, u16, uint16_t) \
    X(UINT32, u32, u32, uint32_t) \
    X(UINT64, u64, u64, uint64_t)
#define KERNEL_INTEGERS(X) KERNEL_SIGNED(X) KERNEL_UNSIGNED(X)
#define KERNEL_WIDE_FLOATS(X) \
    X(FLOAT32, f32, float)    \
    X(FLOAT64, f64, double)
#define KERNEL_NARROW_FLOATS(X)   \
    X(FLOAT16, f16, uint16_t)     \
    X(BFLOAT16, bf16, uint16_t)   \
    X(FLOAT8_E4M3, e4m3, uint8_t) \
    X(FLOAT8_E5M2, e5m2, uint8_t)

enum {
    KERNEL_GROUP = 8,                     /* the most sources of one pass */
    KERNEL_AVERAGE = KERNEL_FUNCTIONS,    /* sum, then divide; floats only */
    KERNEL_PASSES = KERNEL_FUNCTIONS + 1, /* user functions have no pass */
};

/*
 * to[i] = sources[0][i] op ... op sources[k-1][i]; `to` may be one of the sources; 2 <= k <=
 * KERNEL_GROUP.
 */
typedef void kernel_pass(void *to, const void *const *sources, int k, size_t count,
                         unsigned divisor);

/* Two sources to two destinations, each of which may be one of the sources. */
typedef void kernel_both(void *to, void *also, const void *const *sources, size_t count,
                         unsigned divisor);

struct kernel_table {
    const char *name;
    kernel_pass *pass[2][RONDO_TYPES][KERNEL_PASSES]; /* [enum kernel_order]; NULL: not defined */
    kernel_both *both[RONDO_TYPES][KERNEL_PASSES];    /* defined where passes are */
    /* Narrow floats to float32 and back, rounded to nearest even; NULL for other types. */
    void (*widen[RONDO_TYPES])(float *to, const void *from, size_t count);
    void (*narrow[RONDO_TYPES])(void *to, const float *from, size_t count);
    /* Copy past the cache, not yet done for other cores; NULL: the level has no such stores. */
    void (*stream)(void *to, const void *from, size_t bytes);
};

extern const struct kernel_table kernel_plain;
extern const struct kernel_table kernel_avx2;
extern const struct kernel_table kernel_avx512;
extern const struct kernel_table kernel_neon;

/* The table in use; chooses one at first use. */
const struct kernel_table *kernel_table(void);

/* In place on aligned elements of a type that accumulates as it is (any but the narrow floats). */
void kernel_tile_scale(rondo_type type, void *tile, size_t count, const struct kernel_op *op);
void kernel_tile_divide(rondo_type type, void *tile, size_t count, unsigned divisor);

#endif
