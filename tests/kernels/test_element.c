/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_element.c - every code of the narrow floats, and rounding to them, against tables made by
 * ldexp().
 */
#include "tests/kernels/reference.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * `finite`: how many codes from 0 up are finite; the code after the last would be the value at
 * which rounding overflows.
 */
static const struct format {
    rondo_type type;
    int bits, mantissa, bias;
    unsigned finite;
    bool saturates, has_infinity;
    unsigned infinity, nan;
} formats[] = {
    {RONDO_FLOAT16, 16, 10, 15, 0x7c00, false, true, 0x7c00, 0x7e00},
    {RONDO_BFLOAT16, 16, 7, 127, 0x7f80, false, true, 0x7f80, 0x7fc0},
    {RONDO_FLOAT8_E4M3, 8, 3, 7, 0x7f, true, false, 0x7e, 0x7f},
    {RONDO_FLOAT8_E5M2, 8, 2, 15, 0x7c, true, true, 0x7c, 0x7e},
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* Returns what a code without its sign stands for, from the definition of the formats. */
static double meaning(const struct format *f, unsigned code)
{
    int exponent = (int)(code >> f->mantissa);
    double fraction = (double)(code & ((1u << f->mantissa) - 1));

    if (exponent == 0)
        return ldexp(fraction, 1 - f->bias - f->mantissa);
    return ldexp(fraction + (double)(1u << f->mantissa), exponent - f->bias - f->mantissa);
}

static unsigned stored(const struct format *f, double value)
{
    unsigned char bytes[8] = {0};

    kernel_store(f->type, bytes, value);
    return bytes[0] | (unsigned)bytes[1] << 8;
}

/*
 * The nearest code by looking at all neighbours: the last one not above, the next, and the even one
 * if both are as near.
 */
static unsigned nearest(const struct format *f, double value)
{
    double size = fabs(value);
    unsigned sign = signbit(value) ? 1u << (f->bits - 1) : 0, low = 0, high = f->finite;

    if (isnan(value))
        return f->nan;
    if (isinf(value))
        return sign | f->infinity;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (meaning(f, middle) <= size)
            low = middle;
        else
            high = middle;
    }
    double below = size - meaning(f, low), above = meaning(f, low + 1) - size;
    if (above < below || (above == below && low % 2 == 1))
        low++;
    if (low == f->finite)
        low = f->saturates ? f->finite - 1 : f->infinity;
    return sign | low;
}

Test(element, every_code_means_what_the_format_says)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];

        for (unsigned code = 0; code < 1u << f->bits; code++) {
            unsigned size = code & ((1u << (f->bits - 1)) - 1);
            uint16_t bits = (uint16_t)code;
            double value = kernel_load(f->type, &bits);

            if (size < f->finite)
                cr_assert(fabs(value) == meaning(f, size) && !signbit(value) == (code == size));
            else if (f->has_infinity && size == f->infinity)
                cr_assert(isinf(value) && !signbit(value) == (code == size));
            else
                cr_assert(isnan(value), "code %x of %s", code, reference_name(f->type));
        }
    }
}

Test(element, every_code_survives_the_way_to_double_and_back)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];

        for (unsigned code = 0; code < 1u << f->bits; code++) {
            uint16_t bits = (uint16_t)code;
            double value = kernel_load(f->type, &bits);

            cr_assert_eq(stored(f, value), isnan(value) ? f->nan : code, "code %x of %s", code,
                         reference_name(f->type));
        }
    }
}

/* Around every midpoint between neighbours: exactly, and the nearest doubles on both sides. */
Test(element, midpoints_go_to_the_even_neighbour_and_their_sides_do_not)
{
    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];

        for (unsigned code = 0; code < f->finite; code++) {
            double middle = (meaning(f, code) + meaning(f, code + 1)) / 2;
            double values[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY)};

            for (int v = 0; v < 3; v++) {
                cr_assert_eq(stored(f, values[v]), nearest(f, values[v]), "%a to %s", values[v],
                             reference_name(f->type));
                cr_assert_eq(stored(f, -values[v]), nearest(f, -values[v]));
            }
        }
    }
}

Test(element, any_double_goes_to_the_nearest_code)
{
    uint64_t random = 1;

    for (int i = 0; i < FORMATS * 50000; i++) {
        const struct format *f = &formats[i % FORMATS];
        uint64_t bits = reference_random(&random);
        double value;

        if (i / FORMATS % 2 == 0) /* half of them in the range of the format */
            value = ldexp((double)(int64_t)bits,
                          -63 - f->bias - f->mantissa + (int)(bits % (unsigned)(2 * f->bias + 4)));
        else
            memcpy(&value, &bits, sizeof(value));
        cr_assert_eq(stored(f, value), nearest(f, value), "%a to %s", value,
                     reference_name(f->type));
    }
}

Test(element, finite_values_saturate_in_8_bits_and_overflow_in_16)
{
    cr_assert_eq(stored(&formats[0], 65519.0), 0x7bff);
    cr_assert_eq(stored(&formats[0], 65520.0), 0x7c00);
    cr_assert_eq(stored(&formats[1], 3.4e38), 0x7f80);
    cr_assert_eq(stored(&formats[2], 1e300), 0x7e);
    cr_assert_eq(stored(&formats[2], -INFINITY), 0xfe);
    cr_assert_eq(stored(&formats[3], 1e300), 0x7b);
    cr_assert_eq(stored(&formats[3], -1e300), 0xfb);
    cr_assert_eq(stored(&formats[3], INFINITY), 0x7c);
}

Test(element, integers_round_to_even_and_stay_in_range)
{
    int8_t i8 = 0;
    uint8_t u8 = 0;
    int64_t i64 = 0;
    uint64_t u64 = 0;
    const double values[] = {2.5, 3.5, -2.5, 1e30, -1e30, NAN};
    const int8_t to_i8[] = {2, 4, -2, 127, -128, 0};
    const uint8_t to_u8[] = {2, 4, 0, 255, 0, 0};

    for (int i = 0; i < 6; i++) {
        kernel_store(RONDO_INT8, &i8, values[i]);
        kernel_store(RONDO_UINT8, &u8, values[i]);
        cr_expect_eq(i8, to_i8[i]);
        cr_expect_eq(u8, to_u8[i]);
    }
    kernel_store(RONDO_INT64, &i64, 1e30);
    kernel_store(RONDO_UINT64, &u64, 1e30);
    cr_expect_eq(i64, INT64_MAX);
    cr_expect_eq(u64, UINT64_MAX);
    kernel_store(RONDO_INT64, &i64, -1e30);
    cr_expect_eq(i64, INT64_MIN);
    kernel_store(RONDO_INT64, &i64, -4611686018427387904.0);
    cr_expect_eq(kernel_load(RONDO_INT64, &i64), -4611686018427387904.0);
}

enum { CODES = 65536 };

/*
 * All codes with one partner; what two elements give is known, so conversions inside of passes are
 * checked by it.
 */
static int wrong_sums(const struct format *f, const unsigned char *codes, unsigned partner)
{
    static unsigned char same[2 * CODES], out[2 * CODES];
    size_t size = (size_t)f->bits / 8, count = (size_t)1 << f->bits;
    const struct kernel_op op = {.type = f->type, .function = KERNEL_SUM};
    const void *sources[] = {codes, same};
    void *destinations[] = {out};
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = 2,
                               .destination_count = 1,
                               .count = count,
                               .order = KERNEL_FOLD,
                               .scaled = -1};
    double addend;
    int wrong = 0;

    for (size_t i = 0; i < count; i++)
        memcpy(same + i * size, &partner, size);
    addend = kernel_load(f->type, same);
    kernel_reduce(&op, &call);
    for (size_t i = 0; i < count; i++) {
        unsigned got = 0;
        memcpy(&got, out + i * size, size);
        wrong +=
            got != nearest(f, (double)(float)(kernel_load(f->type, codes + i * size) + addend));
    }
    return wrong;
}

Test(element, every_level_converts_every_code_in_a_sum)
{
    static unsigned char codes[2 * CODES];
    uint64_t random = 2;

    for (int i = 0; i < FORMATS; i++) {
        const struct format *f = &formats[i];

        for (unsigned code = 0; code < 1u << f->bits; code++)
            memcpy(codes + code * (size_t)f->bits / 8, &code, (size_t)f->bits / 8);
        for (const char *const *level = kernel_levels(); *level != NULL; level++) {
            kernel_use_level(*level);
            for (int p = 0; p < 3; p++) {
                unsigned partner = p ? (unsigned)reference_random(&random) % (1u << f->bits) : 0;
                cr_expect_eq(wrong_sums(f, codes, partner), 0, "level %s, %s with code %x", *level,
                             reference_name(f->type), partner);
            }
        }
    }
}
