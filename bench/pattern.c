/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.c - fill inputs and compare outputs.
 *
 * One period of values is encoded once per (rank or reduction), then copied or compared block by
 * block, so that checking costs about a memcpy. Sums stay exact in every type because narrow floats
 * get values that are zero on all but three ranks; products because the factors are 1 and 2.
 */
#include "bench/pattern.h"

#include <stdint.h>
#include <string.h>

enum { ELEMENT_MAX = 8 };

/* mantissa_bits 0: an integer. */
static const struct {
    const char *name;
    unsigned char bytes, exponent_bits, mantissa_bits;
} types[RONDO_TYPES] = {
    [RONDO_INT8] = {"int8", 1, 0, 0},
    [RONDO_UINT8] = {"uint8", 1, 0, 0},
    [RONDO_INT16] = {"int16", 2, 0, 0},
    [RONDO_UINT16] = {"uint16", 2, 0, 0},
    [RONDO_INT32] = {"int32", 4, 0, 0},
    [RONDO_UINT32] = {"uint32", 4, 0, 0},
    [RONDO_INT64] = {"int64", 8, 0, 0},
    [RONDO_UINT64] = {"uint64", 8, 0, 0},
    [RONDO_FLOAT16] = {"float16", 2, 5, 10},
    [RONDO_BFLOAT16] = {"bfloat16", 2, 8, 7},
    [RONDO_FLOAT32] = {"float32", 4, 8, 23},
    [RONDO_FLOAT64] = {"float64", 8, 11, 52},
    [RONDO_FLOAT8_E4M3] = {"float8_e4m3", 1, 4, 3},
    [RONDO_FLOAT8_E5M2] = {"float8_e5m2", 1, 5, 2},
};

static const char *const ops[RONDO_OPS] = {
    [RONDO_SUM] = "sum", [RONDO_PROD] = "prod", [RONDO_MIN] = "min", [RONDO_MAX] = "max",
    [RONDO_AVG] = "avg", [RONDO_BAND] = "band", [RONDO_BOR] = "bor", [RONDO_BXOR] = "bxor",
};

const char *pattern_type_name(rondo_type type)
{
    return types[type].name;
}

size_t pattern_type_bytes(rondo_type type)
{
    return types[type].bytes;
}

int pattern_type_find(const char *name)
{
    int found = 0;

    while (found < RONDO_TYPES && strcmp(types[found].name, name))
        found++;
    return found < RONDO_TYPES ? found : -1;
}

const char *pattern_op_name(rondo_op op)
{
    return ops[op];
}

int pattern_op_find(const char *name)
{
    int found = 0;

    while (found < RONDO_OPS && strcmp(ops[found], name))
        found++;
    return found < RONDO_OPS ? found : -1;
}

static bool is_integer(rondo_type type)
{
    return types[type].mantissa_bits == 0;
}

bool pattern_op_has_type(rondo_op op, rondo_type type)
{
    return is_integer(type) || (op != RONDO_BAND && op != RONDO_BOR && op != RONDO_BXOR);
}

bool pattern_is_exact(const struct bench_call *call, int size)
{
    uint64_t largest = 2 * (uint64_t)size; /* of an average's inputs, see value_of() */
    unsigned bits = types[call->type].mantissa_bits;

    if (!bench_collective_reduces(call->collective) || call->op != RONDO_AVG)
        return true;
    if (is_integer(call->type))
        return types[call->type].bytes > 1 ? largest < 32768 : largest < 128;
    while (largest % 2 == 0)
        largest /= 2;
    return largest < (uint64_t)2 << bits && (types[call->type].bytes > 1 || size < 64);
}

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

/* Element `index` (below the period) of a rank's input. */
static uint64_t value_of(const struct bench_call *call, int rank, int size, uint64_t index)
{
    bool reduces = bench_collective_reduces(call->collective);
    uint64_t turn =
        (index + (uint64_t)rank) % (uint64_t)size; /* 0 on one rank, 1 on the next, ... */
    uint64_t noise = mix(index * 1024 + (uint64_t)rank);

    if (reduces && call->op == RONDO_AVG)
        return turn == 0 ? (uint64_t)size * (1 + index % 2) : 0;
    if (reduces && call->op == RONDO_PROD)
        return turn < 3 ? 1 + noise % 2 : 1;
    if (types[call->type].mantissa_bits < 23 && !is_integer(call->type))
        return turn < 3 ? 1 + noise % (turn == 0 ? 3 : 2) : 0; /* the sum is 7 at most, 3 bits */
    return 1 + noise % 100;
}

static uint64_t combine(rondo_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return a < b ? a : b;
    case RONDO_MAX:
        return a > b ? a : b;
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

static uint64_t result_of(const struct bench_call *call, int size, uint64_t index)
{
    uint64_t result = value_of(call, 0, size, index);

    for (int rank = 1; rank < size; rank++)
        result = combine(call->op, result, value_of(call, rank, size, index));
    return call->op == RONDO_AVG ? result / (uint64_t)size : result;
}

/* The bits of a non-negative integer that `type` can represent. */
static uint64_t encode(rondo_type type, uint64_t value)
{
    unsigned mantissa_bits = types[type].mantissa_bits;
    unsigned exponent = 0;
    uint64_t bias = ((uint64_t)1 << types[type].exponent_bits) / 2 - 1;

    if (is_integer(type) || value == 0)
        return value;
    while (value >> exponent > 1)
        exponent++;
    value ^= (uint64_t)1 << exponent;
    value = exponent <= mantissa_bits ? value << (mantissa_bits - exponent)
                                      : value >> (exponent - mantissa_bits);
    return (bias + exponent) << mantissa_bits | value;
}

/* One period of the input of `rank`, or (rank -1) of the reduction over all ranks. */
struct period {
    size_t element;
    unsigned char bytes[PATTERN_PERIOD * ELEMENT_MAX];
};

static void period_init(struct period *period, const struct bench_call *call, int rank, int size)
{
    period->element = types[call->type].bytes;
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++) {
        uint64_t value = rank < 0 ? result_of(call, size, i) : value_of(call, rank, size, i);
        uint64_t bits = encode(call->type, value);

        /* The low bytes come first on the little-endian machines that Rondo runs on. */
        memcpy(period->bytes + i * period->element, &bits, period->element);
    }
}

static void fill(const struct period *period, void *output, size_t count)
{
    unsigned char *to = output;

    for (size_t i = 0; i < count; i += PATTERN_PERIOD) {
        size_t some = count - i < PATTERN_PERIOD ? count - i : PATTERN_PERIOD;

        memcpy(to + i * period->element, period->bytes, some * period->element);
    }
}

/* Compare `count` elements with the pattern's elements from `start` on. */
static size_t differing(const struct period *period, size_t start, size_t count, const void *data)
{
    const unsigned char *at = data;
    size_t wrong = 0;

    for (size_t done = 0; done < count;) {
        size_t phase = (start + done) % PATTERN_PERIOD;
        size_t some = PATTERN_PERIOD - phase < count - done ? PATTERN_PERIOD - phase : count - done;
        const unsigned char *expected = period->bytes + phase * period->element;
        const unsigned char *got = at + done * period->element;

        if (memcmp(got, expected, some * period->element))
            for (size_t i = 0; i < some * period->element; i += period->element)
                wrong += memcmp(got + i, expected + i, period->element) != 0;
        done += some;
    }
    return wrong;
}

void pattern_fill_input(const struct bench_call *call, int rank, int size, void *input)
{
    struct period period;

    period_init(&period, call, rank, size);
    fill(&period, input, bench_input_elements(call, size));
}

/*
 * Blocks from every rank: block r is `count` elements of rank r's input, from element `start` on.
 */
static size_t differing_blocks(const struct bench_call *call, int size, size_t start,
                               const void *output)
{
    const unsigned char *block = output;
    struct period period;
    size_t wrong = 0;

    for (int from = 0; from < size; from++) {
        period_init(&period, call, from, size);
        wrong += differing(&period, start, call->count, block);
        block += call->count * period.element;
    }
    return wrong;
}

size_t pattern_count_wrong(const struct bench_call *call, int rank, int size, const void *output)
{
    enum bench_collective collective = call->collective;
    bool at_root_only = collective == BENCH_REDUCE || collective == BENCH_GATHER;
    bool blocks = bench_output_elements(call, size) > call->count;
    /* Of inputs that have a block for every rank, what comes here begins with that of this one. */
    bool for_all = bench_input_elements(call, size) > call->count;
    size_t start = for_all ? call->count * (size_t)rank : 0;
    bool of_pairs = bench_collective_is_of_pairs(collective);
    int from = collective == BENCH_SENDRECV ? (rank + size - 1) % size
               : of_pairs                   ? bench_pair_source(collective, rank, size)
                                            : call->root;
    struct period period;

    if (!bench_collective_has_size(collective) || (at_root_only && rank != call->root) ||
        (of_pairs && from < 0))
        return 0;
    if (blocks)
        return differing_blocks(call, size, start, output);
    period_init(&period, call, bench_collective_reduces(collective) ? -1 : from, size);
    return differing(&period, start, call->count, output);
}
