/* SPDX-License-Identifier: BSD-3-Clause */
/* reference.c - see reference.h. */
#include "tests/kernels/reference.h"

#include <math.h>
#include <string.h>

struct number {
    double real;      /* floats */
    uint64_t integer; /* integers */
    unsigned char bytes[8];
};

bool reference_is_integer(rondo_type type)
{
    return type <= RONDO_UINT64;
}

bool reference_is_signed(rondo_type type)
{
    return type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
}

size_t reference_size(rondo_type type)
{
    static const size_t sizes[RONDO_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};

    return sizes[type];
}

const char *reference_name(rondo_type type)
{
    static const char *names[RONDO_TYPES] = {
        "int8",   "uint8",   "int16",    "uint16",  "int32",   "uint32",      "int64",
        "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"};

    return names[type];
}

/* The low bits of an integer, extended to 64 as the type says. */
static uint64_t extended(rondo_type type, uint64_t value)
{
    unsigned bits = 8 * (unsigned)reference_size(type);

    if (bits == 64)
        return value;
    value &= (UINT64_C(1) << bits) - 1;
    if (reference_is_signed(type) && value >> (bits - 1))
        value |= ~UINT64_C(0) << bits;
    return value;
}

static struct number load(rondo_type type, const void *element)
{
    struct number number = {0};

    memcpy(number.bytes, element, reference_size(type));
    if (reference_is_integer(type)) {
        memcpy(&number.integer, element,
               reference_size(type)); /* little-endian, as the tests' machines */
        number.integer = extended(type, number.integer);
    } else {
        number.real = kernel_load(type, element);
    }
    return number;
}

static double rounded(rondo_type type, double value)
{
    return type == RONDO_FLOAT64 ? value : (double)(float)value;
}

static double lower(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static struct number combine_real(const struct kernel_op *op, struct number a, struct number b)
{
    struct number result = {0};

    if (op->function == KERNEL_SUM)
        result.real = rounded(op->type, a.real + b.real);
    else if (op->function == KERNEL_PROD)
        result.real = rounded(op->type, a.real * b.real);
    else if (op->function == KERNEL_MIN)
        result.real = lower(a.real, b.real);
    else
        result.real = -lower(-a.real, -b.real);
    return result;
}

static uint64_t lower_integer(rondo_type type, uint64_t a, uint64_t b)
{
    bool a_first = reference_is_signed(type) ? (int64_t)a < (int64_t)b : a < b;

    return a_first ? a : b;
}

static struct number combine_integer(const struct kernel_op *op, struct number a, struct number b)
{
    uint64_t least = lower_integer(op->type, a.integer, b.integer);
    uint64_t results[KERNEL_FUNCTIONS] = {
        [KERNEL_SUM] = a.integer + b.integer,
        [KERNEL_PROD] = a.integer * b.integer,
        [KERNEL_MIN] = least,
        [KERNEL_MAX] = a.integer ^ b.integer ^ least,
        [KERNEL_BAND] = a.integer & b.integer,
        [KERNEL_BOR] = a.integer | b.integer,
        [KERNEL_BXOR] = a.integer ^ b.integer,
    };
    struct number result = {.integer = extended(op->type, results[op->function])};

    return result;
}

static struct number combine(const struct kernel_op *op, struct number a, struct number b)
{
    if (op->function == KERNEL_USER) {
        op->user(op->context, a.bytes, b.bytes, 1, op->type);
        return b;
    }
    return reference_is_integer(op->type) ? combine_integer(op, a, b) : combine_real(op, a, b);
}

static struct number fold(const struct kernel_op *op, const struct number *numbers, int k)
{
    struct number result = numbers[0];

    for (int i = 1; i < k; i++)
        result = combine(op, result, numbers[i]);
    return result;
}

static struct number tree(const struct kernel_op *op, const struct number *numbers, int k)
{
    int half = 1;

    if (k == 1)
        return numbers[0];
    while (half * 2 < k)
        half *= 2;
    return combine(op, tree(op, numbers, half), tree(op, numbers + half, k - half));
}

static bool is_narrow(rondo_type type)
{
    return !reference_is_integer(type) && reference_size(type) <= 2;
}

static void scale(const struct kernel_op *op, struct number *number)
{
    unsigned char bits[8];

    number->integer = extended(op->type, number->integer * op->scale.natural);

    if (reference_is_integer(op->type))
        return;
    number->real = rounded(op->type, number->real * op->scale.real);
    if (!is_narrow(op->type))
        return;
    kernel_store(op->type, bits, number->real); /* as a peer gets it */
    number->real = kernel_load(op->type, bits);
}

static void divide(const struct kernel_op *op, struct number *number)
{
    if (!reference_is_integer(op->type)) {
        number->real = rounded(op->type, number->real / op->divisor);
        if (is_narrow(op->type) && op->restore != 0)
            number->real = rounded(op->type, number->real * (double)op->restore);
    } else if (reference_is_signed(op->type)) {
        number->integer = (uint64_t)((int64_t)number->integer / (int64_t)op->divisor);
    } else {
        number->integer /= op->divisor;
    }
}

void reference_element(const struct kernel_op *op, const struct kernel_call *call,
                       const void *const *sources, void *result)
{
    struct number numbers[REFERENCE_SOURCES_MAX] = {0};
    struct number total;
    bool scaled = op->has_scale && call->scaled >= 0, finish = call->finish && op->divisor > 1;

    for (int i = 0; i < call->source_count; i++)
        numbers[i] = load(op->type, sources[i]);
    if (scaled)
        scale(op, &numbers[call->scaled]);
    total = (call->order == KERNEL_FOLD ? fold : tree)(op, numbers, call->source_count);
    if (finish)
        divide(op, &total);
    if (op->function == KERNEL_USER || (call->source_count == 1 && !scaled && !finish))
        memcpy(result, total.bytes, reference_size(op->type));
    else if (reference_is_integer(op->type))
        memcpy(result, &total.integer, reference_size(op->type));
    else
        kernel_store(op->type, result, total.real);
}

uint64_t reference_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/*
 * Bits of a float format: zero, smallest and largest denormal, smallest normal, one, largest,
 * infinity, two NaN.
 */
static uint64_t edge_bits(rondo_type type, unsigned which)
{
    static const uint64_t edges[RONDO_TYPES][9] = {
        [RONDO_FLOAT16] = {0, 1, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7e00, 0x7d01},
        [RONDO_BFLOAT16] = {0, 1, 0x7f, 0x80, 0x3f80, 0x7f7f, 0x7f80, 0x7fc0, 0x7f81},
        [RONDO_FLOAT32] = {0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
                           0x7f800001},
        [RONDO_FLOAT64] = {0, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000,
                           0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000,
                           0x7ff0000000000001},
        [RONDO_FLOAT8_E4M3] = {0, 1, 7, 8, 0x38, 0x7e, 0x7e, 0x7f, 0x77},
        [RONDO_FLOAT8_E5M2] = {0, 1, 3, 4, 0x3c, 0x7b, 0x7c, 0x7e, 0x7d},
    };
    static const uint64_t integers[9] = {0, 1, 2, 0x7f, 0x7fff, 0x7fffffff, INT64_MAX, 3, 0x5555};

    return reference_is_integer(type) ? integers[which] : edges[type][which];
}

void reference_fill(rondo_type type, void *elements, size_t count, uint64_t *state)
{
    size_t size = reference_size(type);

    for (size_t i = 0; i < count; i++) {
        uint64_t random = reference_random(state), bits = reference_random(state);

        if (random % 8 == 0)
            kernel_store(type, &bits, (double)(random / 8 % 64) - 32);
        else if (random % 2 == 0)
            bits = edge_bits(type, random / 8 % 9) ^ (random >> 63 << (8 * size - 1));
        memcpy((char *)elements + i * size, &bits, size);
    }
}

void reference_fill_small(rondo_type type, void *elements, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++)
        kernel_store(type, (char *)elements + i * reference_size(type),
                     (double)(reference_random(state) % 3));
}

void reference_user(void *context, const void *in, void *inout, size_t count, rondo_type type)
{
    const unsigned char *left = in;
    unsigned char *right = inout;

    if (context != NULL)
        ++*(int *)context;
    for (size_t i = 0; i < count * reference_size(type); i++)
        right[i] = (unsigned char)(left[i] * 31u + right[i] * 7u + 1u);
}
