/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_narrow.c - 16- and 8-bit floats at every level give the bits of the plain one: all pairs of
 * 8-bit codes, all divisors' roundings, many triples and eights, and every 16-bit code.
 */
#include "kernels/kernels.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 16, SOURCES = 8, TRIPLES = 3 };

static const rondo_type narrow[] = {RONDO_FLOAT16, RONDO_BFLOAT16, RONDO_FLOAT8_E4M3,
                                    RONDO_FLOAT8_E5M2};
static uint16_t inputs[SOURCES][COUNT], expected[COUNT], found[COUNT];

/* The first two sources have all pairs of 8-bit codes, the first has all codes of 16 bits. */
static void fill(size_t bytes)
{
    uint32_t state = 1;

    for (int source = 0; source < SOURCES; source++)
        for (int i = 0; i < COUNT; i++) {
            uint8_t *eight = (uint8_t *)inputs[source];

            state = state * 1664525 + 1013904223;
            if (bytes == 2)
                inputs[source][i] = (uint16_t)(source ? state >> 16 : (uint32_t)i);
            else
                eight[i] = (uint8_t)(state >> 24);
            if (bytes == 1 && source < 2)
                eight[i] = (uint8_t)(source ? i >> 8 : i);
        }
}

static void reduce(const char *level, const struct kernel_op *op, int sources, uint16_t *to)
{
    const void *from[SOURCES];
    void *destinations[1] = {to};
    struct kernel_call call = {.sources = from,
                               .destinations = destinations,
                               .source_count = sources,
                               .destination_count = 1,
                               .count = COUNT - 3, /* and a rest */
                               .order = sources > 3 ? KERNEL_BALANCED : KERNEL_FOLD,
                               .scaled = -1,
                               .finish = op->divisor > 0};

    for (int i = 0; i < SOURCES; i++)
        from[i] = inputs[i];
    memset(to, 0, sizeof(found));
    cr_assert(kernel_use_level(level));
    kernel_reduce(op, &call);
}

static void compare(const char *level, const struct kernel_op *op, int sources)
{
    reduce("plain", op, sources, expected);
    reduce(level, op, sources, found);
    for (int i = 0; i < COUNT; i++)
        if (found[i] != expected[i])
            cr_assert_fail("%s, type %d, function %d, divisor %u, %d sources: 2 bytes at %d are "
                           "%04x, not %04x",
                           level, op->type, op->function, op->divisor, sources, 2 * i, found[i],
                           expected[i]);
}

static void each_level(rondo_type type, enum kernel_function function, unsigned divisor)
{
    static const int numbers[] = {2, TRIPLES, SOURCES};
    const struct kernel_op op = {.type = type, .function = function, .divisor = divisor};

    fill(rondo_type_size(type));
    for (const char *const *level = kernel_levels() + 1; *level; level++)
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
            compare(*level, &op, numbers[i]);
}

Test(kernels_narrow, sums_products_minima_and_maxima_have_the_bits_of_the_plain_level)
{
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
        for (int function = KERNEL_SUM; function <= KERNEL_MAX; function++)
            each_level(narrow[i], (enum kernel_function)function, 0);
}

Test(kernels_narrow, averages_round_at_every_place)
{
    static const unsigned divisors[] = {2, 3, 7, 1000, 123456789, UINT32_MAX};

    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
        for (size_t d = 0; d < sizeof(divisors) / sizeof(divisors[0]); d++)
            each_level(narrow[i], KERNEL_SUM, divisors[d]);
}
