/* SPDX-License-Identifier: BSD-3-Clause */
/* values.c - small numbers in every type of NCCL, so that sums are the same bits in any order. */
#include "client.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct format {
    size_t bytes;
    bool is_float;
    int exponent, mantissa; /* bits */
};

static const struct format formats[ncclNumTypes] = {
    [ncclInt8] = {1, false, 0, 0},      [ncclUint8] = {1, false, 0, 0},
    [ncclInt32] = {4, false, 0, 0},     [ncclUint32] = {4, false, 0, 0},
    [ncclInt64] = {8, false, 0, 0},     [ncclUint64] = {8, false, 0, 0},
    [ncclFloat16] = {2, true, 5, 10},   [ncclFloat32] = {4, true, 8, 23},
    [ncclFloat64] = {8, true, 11, 52},  [ncclBfloat16] = {2, true, 8, 7},
    [ncclFloat8e4m3] = {1, true, 4, 3}, [ncclFloat8e5m2] = {1, true, 5, 2},
};

size_t value_bytes(ncclDataType_t type)
{
    return formats[type].bytes;
}

double value_of(int rank, size_t index, ncclRedOp_t op)
{
    size_t mixed = (index * 31 + (size_t)rank * 17 + index / 7) >> 2;

    switch (op) {
    case ncclProd:
        return 1 + (double)(mixed % 2);
    case ncclMax:
    case ncclMin:
        return (double)((mixed + (size_t)rank) % 8);
    default:
        return (double)(mixed % 2);
    }
}

double value_reduced(int size, size_t index, ncclRedOp_t op)
{
    double result = value_of(0, index, op);

    for (int rank = 1; rank < size; rank++) {
        double other = value_of(rank, index, op);

        if (op == ncclProd)
            result *= other;
        else if (op == ncclMax)
            result = fmax(result, other);
        else if (op == ncclMin)
            result = fmin(result, other);
        else
            result += other;
    }
    return op == ncclAvg ? result / size : result;
}

/* No rounding: for values that have these bits. */
static uint64_t float_bits(const struct format *format, double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 to 1 */
    uint64_t sign = value < 0 ? 1 : 0;
    uint64_t mantissa;

    if (value == 0)
        return 0;
    mantissa = (uint64_t)ldexp(fraction * 2 - 1, format->mantissa);
    exponent += (1 << (format->exponent - 1)) - 2;
    return sign << (format->exponent + format->mantissa) | (uint64_t)exponent << format->mantissa |
           mantissa;
}

void value_store(ncclDataType_t type, void *at, double value)
{
    const struct format *format = &formats[type];
    uint64_t bits = format->is_float ? float_bits(format, value) : (uint64_t)(int64_t)value;

    memcpy(at, &bits, format->bytes); /* little endian */
}

void value_fill(ncclDataType_t type, void *host, size_t first, size_t count, int rank,
                ncclRedOp_t op)
{
    for (size_t i = 0; i < count; i++)
        value_store(type, (char *)host + i * value_bytes(type), value_of(rank, first + i, op));
}
