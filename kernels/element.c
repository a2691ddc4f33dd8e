/* SPDX-License-Identifier: BSD-3-Clause */
/* element.c - one element of any type to and from double. */
#include "kernels/scalar.h"
#include "kernels/table.h"

#include <math.h>

double kernel_load(rondo_type type, const void *element)
{
    double value = 0;

    switch (type) {
#define LOAD_FLOAT(type, kind, c_type)             \
    case RONDO_##type:                             \
        value = (double)kind##_load_1(element, 1); \
        break;
#define LOAD_INTEGER(type, kind, wrapping, c_type) LOAD_FLOAT(type, kind, c_type)
        KERNEL_INTEGERS(LOAD_INTEGER)
        KERNEL_WIDE_FLOATS(LOAD_FLOAT)
        KERNEL_NARROW_FLOATS(LOAD_FLOAT)
    default:
        break;
    }
    return value;
}

/*
 * To float32 rounded to odd: towards zero, and the last bit set if anything was lost. Rounding that
 * to a shorter format is the same as rounding the double itself, since the odd bit can neither make
 * nor hide a tie.
 */
static float odd_float(double value)
{
    float nearest = (float)value;

    if (isnan(value) || (double)nearest == value)
        return nearest;
    uint32_t bits = f32_bits_1(nearest);
    if (fabs((double)nearest) > fabs(value))
        bits--; /* of an infinity this is the largest finite number */
    return f32_of_1(bits | 1);
}

/*
 * Nearest even, ends of the range instead of what lies outside, 0 for NaN. `high` is the first
 * number above it.
 */
static int64_t signed_from(double value, double high)
{
    if (isnan(value))
        return 0;
    value = rint(value);
    if (value >= high)
        return (int64_t)((uint64_t)high - 1);
    return value < -high ? (int64_t)-high : (int64_t)value;
}

static uint64_t unsigned_from(double value, double high)
{
    if (isnan(value) || value <= 0)
        return 0;
    value = rint(value);
    if (value < high)
        return (uint64_t)value;
    return high > 0x1p63 ? UINT64_MAX : (uint64_t)high - 1;
}

void kernel_store(rondo_type type, void *element, double value)
{
    switch (type) {
#define STORE_SIGNED(type, kind, wrapping, c_type)                                                \
    case RONDO_##type:                                                                            \
        kind##_store_1(element, (c_type)signed_from(value, ldexp(1, 8 * sizeof(c_type) - 1)), 1); \
        break;
#define STORE_UNSIGNED(type, kind, wrapping, c_type)                                            \
    case RONDO_##type:                                                                          \
        kind##_store_1(element, (c_type)unsigned_from(value, ldexp(1, 8 * sizeof(c_type))), 1); \
        break;
        KERNEL_SIGNED(STORE_SIGNED)
        KERNEL_UNSIGNED(STORE_UNSIGNED)
#define STORE_NARROW(type, kind, c_type)              \
    case RONDO_##type:                                \
        kind##_store_1(element, odd_float(value), 1); \
        break;
        KERNEL_NARROW_FLOATS(STORE_NARROW)
    case RONDO_FLOAT32:
        f32_store_1(element, (float)value, 1);
        break;
    case RONDO_FLOAT64:
        f64_store_1(element, value, 1);
        break;
    default:
        break;
    }
}
