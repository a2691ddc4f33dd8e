/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scale.c - a tile times a scalar (pre-multiplied sum) and a tile divided by one (average), in the
 * accumulating type.
 */
#include "kernels/scalar.h"
#include "kernels/table.h"

/* The compilers make vectors of these loops; every NaN becomes the canonical one, as in passes. */
static void scale_f32(float *tile, size_t count, float factor)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = f32_canonical_1(tile[i] * factor);
}

static void scale_f64(double *tile, size_t count, double factor)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = f64_canonical_1(tile[i] * factor);
}

static void divide_f32(float *tile, size_t count, float divisor)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = f32_canonical_1(tile[i] / divisor);
}

static void divide_f64(double *tile, size_t count, double divisor)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = f64_canonical_1(tile[i] / divisor);
}

/* Products wrap: modulo 2^width it makes no difference whether the bits are signed. */
#define SCALE_INTEGER(type, kind, wrapping, c_type)                       \
    static void scale_##kind(c_type *tile, size_t count, uint64_t factor) \
    {                                                                     \
        wrapping##_1 *bits = (wrapping##_1 *)tile;                        \
        for (size_t i = 0; i < count; i++)                                \
            bits[i] = wrapping##_prod_1(bits[i], (wrapping##_1)factor);   \
    }
/*
 * C division: truncates towards zero. The divisor is below 2^32, so it is the same number in both
 * wide types.
 */
#define DIVIDE(c_type, kind, wide_type)                                     \
    static void divide_##kind(c_type *tile, size_t count, unsigned divisor) \
    {                                                                       \
        for (size_t i = 0; i < count; i++)                                  \
            tile[i] = (c_type)((wide_type)tile[i] / (wide_type)divisor);    \
    }
#define DIVIDE_SIGNED(type, kind, wrapping, c_type)   DIVIDE(c_type, kind, int64_t)
#define DIVIDE_UNSIGNED(type, kind, wrapping, c_type) DIVIDE(c_type, kind, uint64_t)
KERNEL_INTEGERS(SCALE_INTEGER)
KERNEL_SIGNED(DIVIDE_SIGNED)
KERNEL_UNSIGNED(DIVIDE_UNSIGNED)

void kernel_tile_scale(rondo_type type, void *tile, size_t count, const struct kernel_op *op)
{
    switch (type) {
#define SCALE_CASE(type, kind, wrapping, c_type)      \
    case RONDO_##type:                                \
        scale_##kind(tile, count, op->scale.natural); \
        break;
        KERNEL_INTEGERS(SCALE_CASE)
    case RONDO_FLOAT64:
        scale_f64(tile, count, op->scale.real);
        break;
    default: /* narrow floats have been widened */
        scale_f32(tile, count, (float)op->scale.real);
    }
}

void kernel_tile_divide(rondo_type type, void *tile, size_t count, unsigned divisor)
{
    switch (type) {
#define DIVIDE_CASE(type, kind, wrapping, c_type) \
    case RONDO_##type:                            \
        divide_##kind(tile, count, divisor);      \
        break;
        KERNEL_INTEGERS(DIVIDE_CASE)
    case RONDO_FLOAT64:
        divide_f64(tile, count, divisor);
        break;
    default: /* narrow floats have been widened */
        divide_f32(tile, count, (float)divisor);
    }
}
