/* SPDX-License-Identifier: BSD-3-Clause */
/* bits.c - reductions of random reals, see bits.h. */
#include "tests/api/values/bits.h"

#include "tests/api/values/matrix.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT = 3001, LARGE = 40007 };

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

/* ---- The balanced tree ----------------------------------------------------------------------- */

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

/* One test needs this: buffers, and the result by the tree. */
struct tree_test {
    rondo_comm *comm;
    rondo_type type;
    char *in, *out;
    double *wanted; /* [LARGE] */
    char *sentence;
};

static void compute_tree(struct tree_test *test)
{
    int size = rondo_comm_size(test->comm);

    for (size_t i = 0; i < LARGE; i++)
        test->wanted[i] =
            test->type == RONDO_FLOAT32 ? (double)tree32(0, size, i) : tree64(0, size, i);
}

/* Elements first .. first+count-1 of the tree over all ranks? */
static rondo_result check_tree(const struct tree_test *test, size_t first, size_t count,
                               const char *what)
{
    for (size_t i = 0; i < count; i++) {
        double got = world_load(test->type, test->out + i * rondo_type_size(test->type));

        if (got != test->wanted[first + i])
            return world_say(test->sentence, RONDO_ERROR_INTERNAL,
                             "%s of %s over %d ranks: element %zu is %.17g, by the tree %.17g",
                             what, rondo_type_name(test->type), rondo_comm_size(test->comm),
                             first + i, got, test->wanted[first + i]);
    }
    return RONDO_OK;
}

static rondo_result all_reduce_in_pieces(const struct tree_test *test, size_t count, size_t piece)
{
    size_t bytes = rondo_type_size(test->type);
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < count && !result; i += piece) {
        size_t some = count - i < piece ? count - i : piece;

        result = rondo_all_reduce(test->in + i * bytes, test->out + i * bytes, some, test->type,
                                  RONDO_SUM, test->comm, NULL);
    }
    return result;
}

static rondo_result tree_calls(struct tree_test *test)
{
    static const size_t pieces[] = {LARGE, 7777, 1000};
    rondo_comm *comm = test->comm;
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm), root = size - 1;
    size_t part = LARGE / (size_t)size;
    rondo_result result = RONDO_OK;

    fill_random(test->type, rank, LARGE, test->in);
    compute_tree(test);
    for (int p = 0; p < 3 && !result; p++) {
        result = all_reduce_in_pieces(test, LARGE, pieces[p]);
        if (!result)
            result = check_tree(test, 0, LARGE, "all_reduce");
    }
    if (!result)
        result = all_reduce_in_pieces(test, 100, 1);
    if (!result)
        result = check_tree(test, 0, 100, "a small all_reduce");
    if (!result)
        result = rondo_reduce(test->in, test->out, LARGE, test->type, RONDO_SUM, root, comm, NULL);
    if (!result && rank == root)
        result = check_tree(test, 0, LARGE, "reduce");
    if (!result)
        result = rondo_reduce_scatter(test->in, test->out, part, test->type, RONDO_SUM, comm, NULL);
    if (!result)
        result = check_tree(test, part * (size_t)rank, part, "reduce_scatter");
    return result;
}

rondo_result bits_are_the_balanced_tree(rondo_comm *comm, void *argument, char *sentence)
{
    const bool *shared = argument;
    void *in = NULL, *out = NULL;
    double *wanted = malloc(LARGE * sizeof(double));
    rondo_result result = wanted ? RONDO_OK : RONDO_ERROR_MEMORY;
    rondo_type type = RONDO_FLOAT32;

    if (*shared) {
        if (!(result = rondo_mem_alloc(LARGE * sizeof(double), &in)))
            result = rondo_mem_alloc(LARGE * sizeof(double), &out);
    } else {
        in = malloc(LARGE * sizeof(double));
        out = malloc(LARGE * sizeof(double));
        result = in && out ? RONDO_OK : RONDO_ERROR_MEMORY;
    }
    for (; type <= RONDO_FLOAT64 && !result; type++)
        result = tree_calls(&(struct tree_test){comm, type, in, out, wanted, sentence});
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    if (*shared) {
        rondo_mem_free(in);
        rondo_mem_free(out);
    } else {
        free(in);
        free(out);
    }
    free(wanted);
    return result;
}
