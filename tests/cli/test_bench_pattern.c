/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_pattern.c - does the check of `rondo bench` accept right results, and only these?
 *
 * Results are computed here in plain C arithmetic, in an order of our own, on types that C has; the
 * encodings of the types that it has not are compared with numbers from their specifications.
 */
#include "bench/pattern.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, COUNT = 9001 }; /* more than two periods */

static struct bench_call call_of(enum bench_collective collective, rondo_type type, rondo_op op)
{
    struct bench_call call = {.collective = collective, .type = type, .op = op, .root = 2};

    call.count = COUNT;
    return call;
}

static float reduce_float(rondo_op op, float a, float b)
{
    return op == RONDO_PROD  ? a * b
           : op == RONDO_MIN ? (a < b ? a : b)
           : op == RONDO_MAX ? (a > b ? a : b)
                             : a + b;
}

static void check_float(rondo_op op)
{
    struct bench_call call = call_of(BENCH_ALL_REDUCE, RONDO_FLOAT32, op);
    float *input = malloc(COUNT * sizeof(float));
    float *result = malloc(COUNT * sizeof(float));

    pattern_fill_input(&call, RANKS - 1, RANKS, result);
    for (int rank = RANKS - 2; rank >= 0; rank--) {
        pattern_fill_input(&call, rank, RANKS, input);
        for (int i = 0; i < COUNT; i++)
            result[i] = reduce_float(op, result[i], input[i]);
    }
    for (int i = 0; op == RONDO_AVG && i < COUNT; i++)
        result[i] /= RANKS;
    cr_expect_eq(pattern_count_wrong(&call, 0, RANKS, result), 0, "%s", pattern_op_name(op));
    result[COUNT - 1] += 1;
    result[4093] += 1;
    cr_expect_eq(pattern_count_wrong(&call, 0, RANKS, result), 2, "%s", pattern_op_name(op));
    free(input);
    free(result);
}

Test(bench_pattern, float_results_are_judged_right)
{
    static const rondo_op ops[] = {RONDO_SUM, RONDO_PROD, RONDO_MIN, RONDO_MAX, RONDO_AVG};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        check_float(ops[i]);
}

static uint8_t reduce_byte(rondo_op op, uint8_t a, uint8_t b)
{
    switch (op) {
    case RONDO_PROD:
        return (uint8_t)(a * b);
    case RONDO_BAND:
        return a & b;
    case RONDO_BOR:
        return a | b;
    case RONDO_BXOR:
        return a ^ b;
    default:
        return (uint8_t)(a + b); /* wraps */
    }
}

static void check_byte(rondo_op op)
{
    struct bench_call call = call_of(BENCH_REDUCE, RONDO_UINT8, op);
    uint8_t input[COUNT];
    uint8_t result[COUNT];

    pattern_fill_input(&call, 0, RANKS, result);
    for (int rank = 1; rank < RANKS; rank++) {
        pattern_fill_input(&call, rank, RANKS, input);
        for (int i = 0; i < COUNT; i++)
            result[i] = reduce_byte(op, result[i], input[i]);
    }
    cr_expect_eq(pattern_count_wrong(&call, 2, RANKS, result), 0, "%s", pattern_op_name(op));
    result[17] ^= 1;
    cr_expect_eq(pattern_count_wrong(&call, 2, RANKS, result), 1, "%s", pattern_op_name(op));
    cr_expect_eq(pattern_count_wrong(&call, 1, RANKS, result), 0, "only the root has a result");
}

Test(bench_pattern, integers_wrap_and_have_bits)
{
    static const rondo_op ops[] = {RONDO_SUM, RONDO_PROD, RONDO_BAND, RONDO_BOR, RONDO_BXOR};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        check_byte(ops[i]);
}

/* The bits of 0, 1, 2, 3 in types that C17 does not have. */
Test(bench_pattern, narrow_floats_are_encoded_as_specified)
{
    static const struct {
        rondo_type type;
        uint16_t bits[4];
    } expected[] = {
        {RONDO_FLOAT16, {0, 0x3c00, 0x4000, 0x4200}},
        {RONDO_BFLOAT16, {0, 0x3f80, 0x4000, 0x4040}},
        {RONDO_FLOAT8_E4M3, {0, 0x38, 0x40, 0x44}},
        {RONDO_FLOAT8_E5M2, {0, 0x3c, 0x40, 0x42}},
    };

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct bench_call call = call_of(BENCH_BROADCAST, expected[i].type, RONDO_SUM);
        size_t bytes = pattern_type_bytes(call.type);
        unsigned char data[COUNT * 2];
        unsigned seen = 0;

        pattern_fill_input(&call, 2, RANKS, data);
        for (size_t j = 0; j < COUNT; j++) {
            uint16_t bits = 0;
            int value = 0;

            memcpy(&bits, data + j * bytes, bytes);
            while (value < 4 && expected[i].bits[value] != bits)
                value++;
            cr_assert_lt(value, 4, "%s has %#x", pattern_type_name(call.type), bits);
            seen |= 1u << value;
        }
        cr_expect_eq(seen, 0xf, "all four values should occur");
    }
}

static void fill_block(enum bench_collective collective, int from, size_t start, int32_t *block)
{
    struct bench_call call = call_of(collective, RONDO_INT32, RONDO_SUM);
    int32_t *input = malloc(RANKS * COUNT * sizeof(int32_t));

    pattern_fill_input(&call, from, RANKS, input);
    memcpy(block, input + start, COUNT * sizeof(int32_t));
    free(input);
}

Test(bench_pattern, blocks_must_come_from_the_right_rank_and_place)
{
    struct bench_call call = call_of(BENCH_ALL_TO_ALL, RONDO_INT32, RONDO_SUM);
    int32_t *output = malloc(RANKS * COUNT * sizeof(int32_t));

    for (int from = 0; from < RANKS; from++)
        fill_block(BENCH_ALL_TO_ALL, from, 3 * COUNT, output + from * COUNT);
    cr_expect_eq(pattern_count_wrong(&call, 3, RANKS, output), 0);
    cr_expect_gt(pattern_count_wrong(&call, 2, RANKS, output), COUNT, "that is rank 3's output");
    call.collective = BENCH_SCATTER;
    fill_block(BENCH_SCATTER, 2, 4 * COUNT, output);
    cr_expect_eq(pattern_count_wrong(&call, 4, RANKS, output), 0);
    fill_block(BENCH_SCATTER, 1, 4 * COUNT, output);
    cr_expect_gt(pattern_count_wrong(&call, 4, RANKS, output), 0, "that is not the root's input");
    call.collective = BENCH_SENDRECV;
    fill_block(BENCH_SENDRECV, RANKS - 1, 0, output);
    cr_expect_eq(pattern_count_wrong(&call, 0, RANKS, output), 0, "left of rank 0 is the last one");
    free(output);
}

Test(bench_pattern, averages_are_checked_where_they_are_exact)
{
    struct bench_call call = call_of(BENCH_ALL_REDUCE, RONDO_FLOAT8_E5M2, RONDO_AVG);

    cr_expect(pattern_is_exact(&call, 4));
    cr_expect(pattern_is_exact(&call, 5));
    cr_expect_not(pattern_is_exact(&call, 9), "9 needs more than the three bits of a significand");
    call.type = RONDO_FLOAT32;
    cr_expect(pattern_is_exact(&call, 9));
    call.type = RONDO_INT8;
    cr_expect_not(pattern_is_exact(&call, 64), "128 is no int8");
    call.op = RONDO_SUM;
    cr_expect(pattern_is_exact(&call, 64));
}
