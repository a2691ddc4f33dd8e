/* SPDX-License-Identifier: BSD-3-Clause */
/* operations.c - operations of one's own, and what the built-in ones do with special values. */
#include "bodies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 10007 };

/* ---- Maps x -> a * x + b modulo 2^32, one after the other: associative, but the order matters  */

static uint64_t affine(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

/* First `f`, then `g`. */
static uint64_t affine_then(uint64_t f, uint64_t g)
{
    uint32_t fa = (uint32_t)(f >> 32), fb = (uint32_t)f;
    uint32_t ga = (uint32_t)(g >> 32), gb = (uint32_t)g;

    return affine(ga * fa, ga * fb + gb);
}

static void combine_affine(void *context, const void *in, void *inout, size_t count,
                           rondo_type type)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t lower, higher;

        memcpy(&lower, (const char *)in + i * sizeof(lower), sizeof(lower));
        memcpy(&higher, (char *)inout + i * sizeof(higher), sizeof(higher));
        higher = affine_then(lower, higher);
        memcpy((char *)inout + i * sizeof(higher), &higher, sizeof(higher));
    }
}

static uint64_t affine_of(int rank, size_t i)
{
    return world_hash((uint64_t)rank + 1, i) | (uint64_t)1 << 32;
}

static uint64_t affine_of_all(int size, size_t i)
{
    uint64_t all = affine_of(0, i);

    for (int r = 1; r < size; r++)
        all = affine_then(all, affine_of(r, i));
    return all;
}

static rondo_result check_affine(const uint64_t *values, int size, size_t first, size_t count,
                                 char *sentence)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != affine_of_all(size, first + i))
            return world_say(sentence, RONDO_ERROR_INTERNAL,
                             "map %zu of %zu is not that of ranks in order", first + i, count);
    return RONDO_OK;
}

static rondo_result affine_calls(rondo_comm *comm, rondo_op op, size_t count, uint64_t *values,
                                 char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), root = size / 2;
    uint64_t *results = values + LONGEST;
    size_t part = count / (size_t)size;
    rondo_result result;

    for (size_t i = 0; i < count; i++)
        values[i] = affine_of(rank, i);
    result = rondo_all_reduce(values, results, count, RONDO_UINT64, op, comm, NULL);
    if (!result)
        result = check_affine(results, size, 0, count, sentence);
    if (!result)
        result = rondo_reduce(values, results, count, RONDO_UINT64, op, root, comm, NULL);
    if (!result && rank == root)
        result = check_affine(results, size, 0, count, sentence);
    if (!result)
        result = rondo_reduce_scatter(values, results, part, RONDO_UINT64, op, comm, NULL);
    if (!result)
        result = check_affine(results, size, part * (size_t)rank, part, sentence);
    return result;
}

rondo_result operations_affine_maps_in_rank_order(rondo_comm *comm, void *argument, char *sentence)
{
    static const size_t counts[] = {0, 1, 5, 1000, LONGEST};
    uint64_t *values = calloc(2 * LONGEST, sizeof(*values));
    rondo_op op = -1;
    rondo_result result =
        values ? rondo_op_create_user(comm, combine_affine, NULL, 0, &op) : RONDO_ERROR_MEMORY;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !result; i++)
        result = affine_calls(comm, op, counts[i], values, sentence);
    if (!result)
        result = rondo_op_destroy(comm, op);
    if (result)
        world_say(sentence, result, "user operation: %s", rondo_last_error(comm));
    free(values);
    return result;
}

/* ---- A commutative one, with a context ------------------------------------------------------- */

static void combine_xor_with_key(void *context, const void *in, void *inout, size_t count,
                                 rondo_type type)
{
    const uint32_t *key = context;
    const uint32_t *from = in;
    uint32_t *to = inout;

    for (size_t i = 0; i < count; i++)
        to[i] ^= from[i] ^ *key;
}

rondo_result operations_commutative(rondo_comm *comm, void *argument, char *sentence)
{
    uint32_t key = 0x5a5a1234, value = (uint32_t)rondo_comm_rank(comm) * 2654435761u;
    uint32_t wanted = 0, out = 0;
    rondo_op op = -1;
    rondo_result result = rondo_op_create_user(comm, combine_xor_with_key, &key, 1, &op);

    for (int r = 0; r < rondo_comm_size(comm); r++)
        wanted ^= (uint32_t)r * 2654435761u ^ (r ? key : 0);
    if (!result)
        result = rondo_all_reduce(&value, &out, 1, RONDO_UINT32, op, comm, NULL);
    if (!result && out != wanted)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "got %#x, not %#x", out, wanted);
    if (!result)
        result = rondo_op_destroy(comm, op);
    if (result)
        return world_say(sentence, result, "commutative: %s", rondo_last_error(comm));
    result = rondo_all_reduce(&value, &out, 1, RONDO_UINT32, op, comm, NULL);
    if (result != RONDO_ERROR_INVALID)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "a destroyed operation gave %s",
                         rondo_result_string(result));
    return RONDO_OK;
}

/* ---- Handles that differ between ranks ------------------------------------------------------- */

static rondo_result sum_with(rondo_comm *comm, rondo_op op, char *sentence)
{
    uint32_t one = 1, out = 0;
    rondo_result result = rondo_all_reduce(&one, &out, 1, RONDO_UINT32, op, comm, NULL);

    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    if (out != (uint32_t)rondo_comm_size(comm))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "the sum is %u", out);
    return RONDO_OK;
}

static void combine_by_adding(void *context, const void *in, void *inout, size_t count,
                              rondo_type type)
{
    const uint32_t *from = in;
    uint32_t *to = inout;

    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Rank r has made and destroyed r operations before, and has another left. */
rondo_result operations_differ_in_number(rondo_comm *comm, void *argument, char *sentence)
{
    uint32_t one = 1;
    rondo_op op = -1, other = -1, scaled = -1;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < rondo_comm_rank(comm) && !result; i++) {
        result = rondo_op_create_user(comm, combine_by_adding, NULL, 0, &other);
        if (!result)
            result = rondo_op_destroy(comm, other);
    }
    if (!result && rondo_comm_rank(comm) % 2)
        result = rondo_op_create_premul_sum(comm, &one, RONDO_UINT32, &other);
    if (!result)
        result = rondo_op_create_user(comm, combine_by_adding, NULL, 1, &op);
    if (!result)
        result = rondo_op_create_premul_sum(comm, &one, RONDO_UINT32, &scaled);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    for (int i = 0; i < 3 && !result; i++) {
        result = sum_with(comm, op, sentence);
        if (!result)
            result = sum_with(comm, scaled, sentence);
    }
    return result;
}

rondo_result operations_differ_in_kind(rondo_comm *comm, void *argument, char *sentence)
{
    bool last = rondo_comm_rank(comm) == rondo_comm_size(comm) - 1;
    rondo_op op = -1;
    rondo_result result = rondo_op_create_user(comm, combine_by_adding, NULL, !last, &op);

    return result ? result : sum_with(comm, op, sentence);
}

/* ---- Built-in ones --------------------------------------------------------------------------- */

rondo_result operations_premul_sum(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    double wanted = 0, scalar = rank + 0.5;
    double values[100], sums[100];
    rondo_op op = -1;
    rondo_result result = rondo_op_create_premul_sum(comm, &scalar, RONDO_FLOAT64, &op);

    scalar = 1e300; /* it was read at once */
    for (int i = 0; i < 100; i++)
        values[i] = (double)(i * (rank + 1));
    if (!result)
        result = rondo_all_reduce(values, sums, 100, RONDO_FLOAT64, op, comm, NULL);
    for (int i = 0; i < 100 && !result; i++) {
        wanted = 0;
        for (int r = 0; r < size; r++)
            wanted += (r + 0.5) * (double)(i * (r + 1));
        if (sums[i] != wanted)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "%g, not %g", sums[i], wanted);
    }
    if (!result)
        result = rondo_op_destroy(comm, op);
    return result ? world_say(sentence, result, "premul: %s", rondo_last_error(comm)) : RONDO_OK;
}

static rondo_result special(rondo_comm *comm, rondo_op op, float mine, float *ret_value)
{
    return rondo_all_reduce(&mine, ret_value, 1, RONDO_FLOAT32, op, comm, NULL);
}

/* NaN wins, also when only the last rank has it; -0 is below +0. */
rondo_result operations_min_max_of_special_values(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), last = rondo_comm_size(comm) - 1;
    rondo_result result = RONDO_OK;

    for (rondo_op op = RONDO_MIN; op <= RONDO_MAX && !result; op++) {
        float nan = 0, zero = 1, infinity = 0;

        if ((result = special(comm, op, rank == last ? NAN : (float)rank, &nan)) ||
            (result = special(comm, op, rank % 2 ? -0.0f : 0.0f, &zero)) ||
            (result = special(comm, op, rank == last ? INFINITY : -INFINITY, &infinity)))
            return world_say(sentence, result, "%s", rondo_last_error(comm));
        if (!isnan(nan))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "NaN was lost: %g", (double)nan);
        else if (zero != 0 || !signbit(zero) != (op == RONDO_MAX || last == 0))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "the wrong zero: %g", (double)zero);
        else if (!isinf(infinity) || (infinity > 0) != (op == RONDO_MAX || last == 0))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "not the right infinity: %g",
                               (double)infinity);
    }
    return result;
}

/* Two ranks or more: the largest number plus itself stays the largest number. */
rondo_result operations_narrow_sums_saturate(rondo_comm *comm, void *argument, char *sentence)
{
    static const struct {
        rondo_type type;
        double largest;
    } types[] = {{RONDO_FLOAT8_E4M3, 448}, {RONDO_FLOAT8_E5M2, 57344}};

    for (int i = 0; i < 2; i++) {
        uint64_t value = 0, sum = 0;
        rondo_result result;

        world_store(types[i].type, &value, types[i].largest);
        result = rondo_all_reduce(&value, &sum, 1, types[i].type, RONDO_SUM, comm, NULL);
        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(comm));
        if (world_load(types[i].type, &sum) != types[i].largest)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%s: the sum is %g",
                             rondo_type_name(types[i].type), world_load(types[i].type, &sum));
    }
    return RONDO_OK;
}
