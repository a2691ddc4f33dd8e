/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * number.c - loops over numbers, see number.h.
 *
 * Conversions choose between cases by conditional values instead of branches, so that compilers
 * make vector instructions of the loops.
 */
#include "ddp/number.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint16_t to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t nan = bits | 0x400000; /* rounding must not make it infinite */

    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16);
}

static float from_bfloat16(uint16_t half)
{
    return from_bits((uint32_t)half << 16);
}

static uint16_t to_float16(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    /* 10 of 23 bits stay; a carry goes on into the exponent, which is right. 112 = 127 - 15. */
    uint32_t normal = ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112u << 10);
    /* Below 2^-14 units are 2^-24, which are also those of 0.5: adding it rounds to them. */
    uint32_t tiny = bits_of(from_bits(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t half = magnitude < 0x38800000 ? tiny : normal;

    half = magnitude >= 0x47800000 ? 0x7c00 : half; /* 65536; from 65520 on rounding made it so */
    half = magnitude > 0x7f800000 ? 0x7e00 : half;
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static float from_float16(uint16_t half)
{
    uint32_t magnitude = half & 0x7fff, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    uint32_t tiny = bits_of((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = magnitude < 0x400 ? tiny : normal;

    bits = magnitude >= 0x7c00 ? normal + (112u << 23) : bits;
    return from_bits(bits | sign);
}

void ddp_compress(const float *from, uint16_t *to, size_t count, rondo_type type, float divisor)
{
    if (type == RONDO_FLOAT16) {
        for (size_t i = 0; i < count; i++)
            to[i] = to_float16(from[i] / divisor);
    } else {
        for (size_t i = 0; i < count; i++)
            to[i] = to_bfloat16(from[i] / divisor);
    }
}

void ddp_expand(const uint16_t *from, float *to, size_t count, rondo_type type)
{
    if (type == RONDO_FLOAT16) {
        for (size_t i = 0; i < count; i++)
            to[i] = from_float16(from[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            to[i] = from_bfloat16(from[i]);
    }
}

static void divide_16(uint16_t *values, size_t count, rondo_type type, float divisor)
{
    for (size_t i = 0; i < count; i++) {
        float value;

        ddp_expand(values + i, &value, 1, type);
        ddp_compress(&value, values + i, 1, type, divisor);
    }
}

void ddp_divide(void *values, size_t count, rondo_type type, double divisor)
{
    float *singles = values, single = (float)divisor;
    double *doubles = values;

    if (type == RONDO_FLOAT32)
        for (size_t i = 0; i < count; i++)
            singles[i] /= single;
    else if (type == RONDO_FLOAT64)
        for (size_t i = 0; i < count; i++)
            doubles[i] /= divisor;
    else
        divide_16(values, count, type, single);
}

static void add_32(const float *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] + to[i];
}

static void add_64(const double *from, double *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] + to[i];
}

void ddp_add(const void *from, void *to, size_t count, rondo_type type)
{
    if (type == RONDO_FLOAT32)
        add_32(from, to, count);
    else
        add_64(from, to, count);
}

/* Exponent all ones: infinite or NaN. */
static size_t find_16(const uint16_t *values, size_t count, uint16_t exponent)
{
    for (size_t i = 0; i < count; i++)
        if ((values[i] & exponent) == exponent)
            return i;
    return count;
}

/* Whole blocks first, without leaving early: that is a loop for vectors. */
static size_t find_32(const float *values, size_t count)
{
    enum { BLOCK = 1024 };

    for (size_t first = 0; first < count; first += BLOCK) {
        size_t end = count - first < BLOCK ? count : first + BLOCK;
        unsigned found = 0;

        for (size_t i = first; i < end; i++)
            found |= (bits_of(values[i]) & 0x7f800000) == 0x7f800000;
        for (size_t i = first; i < end && found; i++)
            if ((bits_of(values[i]) & 0x7f800000) == 0x7f800000)
                return i;
    }
    return count;
}

static size_t find_64(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(values[i] - values[i] == 0))
            return i;
    return count;
}

size_t ddp_find_infinite(const void *values, size_t count, rondo_type type)
{
    if (type == RONDO_FLOAT32)
        return find_32(values, count);
    if (type == RONDO_FLOAT64)
        return find_64(values, count);
    return find_16(values, count, type == RONDO_FLOAT16 ? 0x7c00 : 0x7f80);
}

double ddp_value(const void *values, size_t index, rondo_type type)
{
    float value;

    if (type == RONDO_FLOAT64)
        return ((const double *)values)[index];
    if (type == RONDO_FLOAT32)
        return ((const float *)values)[index];
    ddp_expand((const uint16_t *)values + index, &value, 1, type);
    return value;
}
