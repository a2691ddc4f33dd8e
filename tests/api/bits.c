/* SPDX-License-Identifier: BSD-3-Clause */
/* bits.c - reductions of random reals, see bits.h. */
#include "bits.h"

#include "matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3001, LARGE = 60000 };

static const rondo_type types[BITS_TYPES] = {RONDO_FLOAT32, RONDO_FLOAT64, RONDO_FLOAT16,
                                             RONDO_BFLOAT16};

/* A real of either sign whose exponent varies, so that sums round differently in every order. */
static double random_real(int rank, size_t i)
{
    uint64_t hash = world_hash((uint64_t)rank + 77, i);
    double real = ldexp((double)(hash >> 11), -53) + 0.5;

    return (hash & 1 ? -1 : 1) * ldexp(real, (int)(hash >> 1 & 7) - 4);
}

static void fill_random(rondo_type type, int rank, size_t count, char *to)
{
    size_t bytes = rondo_type_size(type);

    for (size_t i = 0; i < count; i++) {
        double real = random_real(rank, i);

        if (bytes == 2) { /* the 7 bits after the first that both types have */
            int exponent;

            real = frexp(real, &exponent);
            real = ldexp(trunc(ldexp(real, 8)), exponent - 8);
        }
        world_store(type, to + i * bytes, real);
    }
}

static uint64_t hash_of(const char *bytes, size_t count)
{
    uint64_t hash = 1469598103934665603u;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash | 1; /* 0 means refused */
}

static rondo_result all_reduce_by(const char *algorithm, const void *input, void *output,
                                  rondo_type type, rondo_comm *comm)
{
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = RONDO_ALL_REDUCE,
        .type = type,
        .op = RONDO_SUM,
        .input = input,
        .output = output,
        .count = COUNT,
        .comm = comm,
        .algorithm = algorithm,
    };

    return rondo_collective_call(&call);
}

rondo_result bits_by_algorithm(rondo_comm *comm, void *argument, char *sentence)
{
    struct bits *bits = argument;
    int rank = rondo_comm_rank(comm);
    void *input = NULL, *output = NULL;
    rondo_result result = rondo_mem_alloc(COUNT * sizeof(double), &input);

    if (!result)
        result = rondo_mem_alloc(COUNT * sizeof(double), &output);
    for (int t = 0; t < BITS_TYPES && !result; t++) {
        size_t bytes = COUNT * rondo_type_size(types[t]);

        fill_random(types[t], rank, COUNT, input);
        for (int a = 0; matrix_algorithms[a] && !result; a++)
            for (int repeat = 0; repeat < BITS_REPEATS && !result; repeat++) {
                result = all_reduce_by(matrix_algorithms[a], input, output, types[t], comm);
                if (!result)
                    bits->hash[bits_key(t, a, repeat)][rank] = hash_of(output, bytes);
                else if (result == RONDO_ERROR_UNSUPPORTED)
                    result = RONDO_OK;
            }
    }
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    rondo_mem_free(input);
    rondo_mem_free(output);
    return result;
}

/* ---- The balanced tree --------------------------------------------------------------------------------------- */

static int largest_power_of_two_below(int n)
{
    int power = 1;

    while (2 * power < n)
        power *= 2;
    return power;
}

static float tree32(int first, int ranks, size_t i)
{
    int left = largest_power_of_two_below(ranks);

    if (ranks == 1)
        return (float)random_real(first, i);
    return tree32(first, left, i) + tree32(first + left, ranks - left, i);
}

static double tree64(int first, int ranks, size_t i)
{
    int left = largest_power_of_two_below(ranks);

    if (ranks == 1)
        return random_real(first, i);
    return tree64(first, left, i) + tree64(first + left, ranks - left, i);
}

/* Elements first .. first+count-1 of the tree over all ranks? */
static rondo_result check_tree(rondo_comm *comm, rondo_type type, size_t first, size_t count,
                               const char *at, const char *what, char *sentence)
{
    int size = rondo_comm_size(comm);

    for (size_t i = 0; i < count; i++) {
        double got = world_load(type, at + i * rondo_type_size(type));
        double wanted =
            type == RONDO_FLOAT32 ? (double)tree32(0, size, first + i) : tree64(0, size, first + i);

        if (got != wanted)
            return world_say(sentence, RONDO_ERROR_INTERNAL,
                             "%s of %s over %d ranks: element %zu is %.17g, by the tree %.17g",
                             what, rondo_type_name(type), size, first + i, got, wanted);
    }
    return RONDO_OK;
}

static rondo_result all_reduce_in_pieces(rondo_comm *comm, rondo_type type, const char *in,
                                         char *out, size_t count, size_t piece)
{
    size_t bytes = rondo_type_size(type);
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < count && !result; i += piece) {
        size_t some = count - i < piece ? count - i : piece;

        result =
            rondo_all_reduce(in + i * bytes, out + i * bytes, some, type, RONDO_SUM, comm, NULL);
    }
    return result;
}

static rondo_result tree_calls(rondo_comm *comm, rondo_type type, char *in, char *out,
                               char *sentence)
{
    static const size_t pieces[] = {LARGE, 7777, 1000};
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), root = size - 1;
    size_t part = LARGE / (size_t)size;
    rondo_result result = RONDO_OK;

    fill_random(type, rank, LARGE, in);
    for (int p = 0; p < 3 && !result; p++) {
        result = all_reduce_in_pieces(comm, type, in, out, LARGE, pieces[p]);
        if (!result)
            result = check_tree(comm, type, 0, LARGE, out, "all_reduce", sentence);
    }
    if (!result)
        result = all_reduce_in_pieces(comm, type, in, out, 100, 1);
    if (!result)
        result = check_tree(comm, type, 0, 100, out, "a small all_reduce", sentence);
    if (!result)
        result = rondo_reduce(in, out, LARGE, type, RONDO_SUM, root, comm, NULL);
    if (!result && rank == root)
        result = check_tree(comm, type, 0, LARGE, out, "reduce", sentence);
    if (!result)
        result = rondo_reduce_scatter(in, out, part, type, RONDO_SUM, comm, NULL);
    if (!result)
        result = check_tree(comm, type, part * (size_t)rank, part, out, "reduce_scatter", sentence);
    return result;
}

rondo_result bits_are_the_balanced_tree(rondo_comm *comm, void *argument, char *sentence)
{
    const bool *shared = argument;
    void *in = NULL, *out = NULL;
    rondo_result result = RONDO_OK;

    if (*shared) {
        if (!(result = rondo_mem_alloc(LARGE * sizeof(double), &in)))
            result = rondo_mem_alloc(LARGE * sizeof(double), &out);
    } else {
        in = malloc(LARGE * sizeof(double));
        out = malloc(LARGE * sizeof(double));
        result = in && out ? RONDO_OK : RONDO_ERROR_MEMORY;
    }
    if (!result)
        result = tree_calls(comm, RONDO_FLOAT32, in, out, sentence);
    if (!result)
        result = tree_calls(comm, RONDO_FLOAT64, in, out, sentence);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    if (*shared) {
        rondo_mem_free(in);
        rondo_mem_free(out);
    } else {
        free(in);
        free(out);
    }
    return result;
}
