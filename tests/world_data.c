/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world_data.c - what ranks contribute in tests, and what must come out.
 *
 * Floats: a sum of any subset of ranks stays an integer that the type holds exactly; where the type
 * is too narrow for that (8-bit floats over many ranks) only every few ranks give something other
 * than 0, which ones turns with the element. Products are of powers of two. Integers wrap, so any
 * bits do, but for averages. Values repeat every PERIOD elements, a prime, so that a table makes
 * large checks cheap and shifts still show.
 */
#include "world.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 1021, FEW = 4 };

enum kind { SIGNED, UNSIGNED, REAL };

static const struct traits {
    enum kind kind;
    unsigned bytes, mantissa, exponent;
    double limit; /* integers up to here are exact, and so are their sums up to here */
} types[RONDO_TYPES] = {
    [RONDO_INT8] = {SIGNED, 1, 0, 0, 127},        [RONDO_UINT8] = {UNSIGNED, 1, 0, 0, 255},
    [RONDO_INT16] = {SIGNED, 2, 0, 0, 32767},     [RONDO_UINT16] = {UNSIGNED, 2, 0, 0, 65535},
    [RONDO_INT32] = {SIGNED, 4, 0, 0, 1e9},       [RONDO_UINT32] = {UNSIGNED, 4, 0, 0, 1e9},
    [RONDO_INT64] = {SIGNED, 8, 0, 0, 1e15},      [RONDO_UINT64] = {UNSIGNED, 8, 0, 0, 1e15},
    [RONDO_FLOAT16] = {REAL, 2, 10, 5, 2048},     [RONDO_BFLOAT16] = {REAL, 2, 7, 8, 256},
    [RONDO_FLOAT32] = {REAL, 4, 23, 8, 16777216}, [RONDO_FLOAT64] = {REAL, 8, 52, 11, 1e15},
    [RONDO_FLOAT8_E4M3] = {REAL, 1, 3, 4, 16},    [RONDO_FLOAT8_E5M2] = {REAL, 1, 2, 5, 8},
};

uint64_t world_hash(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

bool world_is_float(rondo_type type)
{
    return types[type].kind == REAL;
}

/* ---- Elements -------------------------------------------------------------------------------- */

static uint64_t load_bits(rondo_type type, const void *element)
{
    uint64_t bits = 0;

    memcpy(&bits, element, types[type].bytes); /* the machines we know are little endian */
    return bits;
}

static double load_narrow(const struct traits *t, uint64_t bits)
{
    int bias = (1 << (t->exponent - 1)) - 1;
    int exponent = (int)(bits >> t->mantissa) & ((1 << t->exponent) - 1);
    double fraction = (double)(bits & ((1u << t->mantissa) - 1));
    double sign = bits >> (t->mantissa + t->exponent) & 1 ? -1 : 1;
    bool e4m3 = t->bytes == 1 && t->mantissa == 3;

    if (exponent == (1 << t->exponent) - 1 && (!e4m3 || fraction == 7))
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - (int)t->mantissa);
    return sign * ldexp(fraction + ldexp(1, (int)t->mantissa), exponent - bias - (int)t->mantissa);
}

double world_load(rondo_type type, const void *element)
{
    uint64_t bits = load_bits(type, element);
    unsigned shift = 64 - 8 * types[type].bytes;
    float single;
    double real;

    if (types[type].kind == UNSIGNED)
        return (double)bits;
    if (types[type].kind == SIGNED)
        return (double)((int64_t)(bits << shift) >> shift);
    if (type == RONDO_FLOAT64) {
        memcpy(&real, element, sizeof(real));
        return real;
    }
    if (type == RONDO_FLOAT32) {
        memcpy(&single, element, sizeof(single));
        return single;
    }
    return load_narrow(&types[type], bits);
}

static uint64_t narrow_bits(const struct traits *t, double value)
{
    int bias = (1 << (t->exponent - 1)) - 1, exponent;
    double fraction =
        frexp(fabs(value), &exponent) * 2 - 1; /* value = (1 + fraction) * 2^(exponent - 1) */
    uint64_t sign = signbit(value) ? (uint64_t)1 << (t->mantissa + t->exponent) : 0;

    if (value == 0)
        return sign;
    assert(exponent - 1 + bias > 0 && exponent - 1 + bias < 1 << t->exponent);
    return sign | (uint64_t)(exponent - 1 + bias) << t->mantissa |
           (uint64_t)ldexp(fraction, (int)t->mantissa);
}

void world_store(rondo_type type, void *element, double value)
{
    const struct traits *t = &types[type];
    float single = (float)value;
    uint64_t bits;

    if (type == RONDO_FLOAT64) {
        memcpy(element, &value, sizeof(value));
    } else if (type == RONDO_FLOAT32) {
        memcpy(element, &single, sizeof(single));
    } else {
        bits = t->kind == REAL ? narrow_bits(t, value) : (uint64_t)(int64_t)value;
        memcpy(element, &bits, t->bytes);
    }
}

/* ---- What ranks contribute ------------------------------------------------------------------- */

/*
 * True if this rank gives something other than the neutral value to element i, where only few may.
 */
static bool is_one_of_few(const struct world_data *data, int rank, size_t i)
{
    size_t stride = ((size_t)data->size + FEW - 1) / FEW;

    return ((size_t)rank + i) % stride == 0;
}

static double real_value(const struct world_data *data, int rank, size_t i)
{
    uint64_t hash = world_hash(world_hash(data->seed, (uint64_t)rank), i);
    double limit = types[data->type].limit;
    double sign = hash & 1 ? -1 : 1;

    hash >>= 1;
    if (data->op == RONDO_PROD)
        return sign * (is_one_of_few(data, rank, i) ? ldexp(1, (int)(hash % 3) - 1) : 1);
    if (data->op == RONDO_SUM || data->op == RONDO_AVG) {
        if (limit >= data->size)
            limit = floor(limit / data->size);
        else
            limit = is_one_of_few(data, rank, i) ? limit / FEW : 0;
        if (limit == 0)
            return 0;
    }
    return sign * (1 + (double)(hash % (uint64_t)limit));
}

static uint64_t integer_bits(const struct world_data *data, int rank, size_t i)
{
    uint64_t hash = world_hash(world_hash(data->seed, (uint64_t)rank), i);
    uint64_t limit = (uint64_t)types[data->type].limit / (uint64_t)data->size;

    if (data->op != RONDO_AVG)
        return hash;
    if (types[data->type].kind == SIGNED && hash & 1)
        return (uint64_t) - (int64_t)(hash / 2 % (limit + 1));
    return hash / 2 % (limit + 1);
}

static void contribute(const struct world_data *data, int rank, size_t i, void *element)
{
    uint64_t bits;

    if (types[data->type].kind == REAL && data->op != WORLD_MOVED) {
        world_store(data->type, element, real_value(data, rank, i));
        return;
    }
    bits = integer_bits(data, rank, i);
    memcpy(element, &bits, types[data->type].bytes);
}

void world_fill(const struct world_data *data, int rank, size_t count, void *to)
{
    size_t bytes = types[data->type].bytes;
    size_t some = count < PERIOD ? count : PERIOD;

    for (size_t i = 0; i < some; i++)
        contribute(data, rank, i, (char *)to + i * bytes);
    for (size_t done = some; done < count; done += some) {
        some = count - done < done ? count - done
                                   : done; /* a multiple of PERIOD, but for the last one */
        memcpy((char *)to + done * bytes, to, some * bytes);
    }
}

/* ---- What must come out ---------------------------------------------------------------------- */

static double real_result(const struct world_data *data, size_t i)
{
    double result = real_value(data, 0, i);

    for (int r = 1; r < data->size; r++) {
        double value = real_value(data, r, i);

        if (data->op == RONDO_PROD)
            result *= value;
        else if (data->op == RONDO_MIN)
            result = fmin(result, value);
        else if (data->op == RONDO_MAX)
            result = fmax(result, value);
        else
            result += value;
    }
    return data->op == RONDO_AVG ? result / data->size : result;
}

static uint64_t combine_integers(rondo_op op, uint64_t a, uint64_t b, bool b_is_less)
{
    switch (op) {
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return b_is_less ? b : a;
    case RONDO_MAX:
        return b_is_less ? a : b;
    case RONDO_BAND:
        return a & b;
    case RONDO_BOR:
        return a | b;
    case RONDO_BXOR:
        return a ^ b;
    default:
        return a + b;
    }
}

/* Sign- or zero-extended to 64 bits. */
static uint64_t integer_result(const struct world_data *data, size_t i)
{
    unsigned shift = 64 - 8 * types[data->type].bytes;
    bool is_signed = types[data->type].kind == SIGNED;
    uint64_t result = 0;

    for (int r = 0; r < data->size; r++) {
        uint64_t value = integer_bits(data, r, i)
                         << shift; /* the type's sign bit on top: compares well */
        bool less =
            is_signed ? (int64_t)value < (int64_t)(result << shift) : value < result << shift;

        value = is_signed ? (uint64_t)((int64_t)value >> shift) : value >> shift;
        result = r ? combine_integers(data->op, result, value, less) : value;
    }
    if (data->op != RONDO_AVG)
        return result;
    return is_signed ? (uint64_t)((int64_t)result / data->size) : result / (uint64_t)data->size;
}

static bool complain(const struct world_data *data, size_t i, const void *at, double wanted,
                     char *sentence)
{
    world_say(sentence, RONDO_OK, "element %zu of %s is %.17g (%#" PRIx64 "), should be %.17g", i,
              rondo_type_name(data->type), world_load(data->type, at), load_bits(data->type, at),
              wanted);
    return false;
}

/* Compare with a table of PERIOD elements; the index of the first that differs, or count. */
static size_t compare(const char *table, size_t bytes, size_t first, size_t count, const char *at)
{
    for (size_t i = 0; i < count;) {
        size_t phase = (first + i) % PERIOD;
        size_t some = PERIOD - phase < count - i ? PERIOD - phase : count - i;

        if (memcmp(table + phase * bytes, at + i * bytes, some * bytes))
            for (size_t j = 0; j < some; j++)
                if (memcmp(table + (phase + j) * bytes, at + (i + j) * bytes, bytes))
                    return i + j;
        i += some;
    }
    return count;
}

bool world_check_moved(const struct world_data *data, int rank, size_t first, size_t count,
                       const void *at, char *sentence)
{
    size_t bytes = types[data->type].bytes, wrong;
    char table[PERIOD * 8];

    for (size_t i = 0; i < PERIOD && i < first + count; i++)
        contribute(data, rank, i, table + i * bytes);
    wrong = compare(table, bytes, first, count, at);
    if (wrong == count)
        return true;
    return complain(data, first + wrong, (const char *)at + wrong * bytes,
                    world_load(data->type, table + (first + wrong) % PERIOD * bytes), sentence);
}

/* The one case with a tolerance: averages of floats are rounded, once. */
static bool check_real_average(const struct world_data *data, size_t first, size_t count,
                               const char *at, char *sentence)
{
    const struct traits *t = &types[data->type];
    double least = ldexp(1, 2 - (1 << (t->exponent - 1)) - (int)t->mantissa);
    double wanted[PERIOD];

    for (size_t i = 0; i < PERIOD && i < first + count; i++)
        wanted[i] = real_result(data, i);
    for (size_t i = 0; i < count; i++) {
        double want = wanted[(first + i) % PERIOD];
        double error = fabs(world_load(data->type, at + i * t->bytes) - want);

        if (!(error <= fabs(want) * ldexp(1, -(int)t->mantissa) + least))
            return complain(data, first + i, at + i * t->bytes, want, sentence);
    }
    return true;
}

bool world_check_reduced(const struct world_data *data, size_t first, size_t count, const void *at,
                         char *sentence)
{
    size_t bytes = types[data->type].bytes, wrong;
    bool real = types[data->type].kind == REAL;
    char table[PERIOD * 8];

    if (real && data->op == RONDO_AVG)
        return check_real_average(data, first, count, at, sentence);
    for (size_t i = 0; i < PERIOD && i < first + count; i++) {
        uint64_t bits = real ? 0 : integer_result(data, i);

        if (real)
            world_store(data->type, table + i * bytes, real_result(data, i));
        else
            memcpy(table + i * bytes, &bits, bytes);
    }
    wrong = compare(table, bytes, first, count, at);
    if (wrong == count)
        return true;
    return complain(data, first + wrong, (const char *)at + wrong * bytes,
                    world_load(data->type, table + (first + wrong) % PERIOD * bytes), sentence);
}
