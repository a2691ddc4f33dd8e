/* SPDX-License-Identifier: BSD-3-Clause */
/* test_reduce.c - reductions on the device have the bits of those on the host. */
#include "base/fail.h"
#include "tests/cuda/duel.h"
#include "tests/kernels/reference.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static const int source_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 23, 33, 64};
static const size_t counts[] = {0, 1, 3, 8, 17, 64, 131, 1021};
enum {
    SOURCE_COUNTS = sizeof(source_counts) / sizeof(source_counts[0]),
    COUNTS = sizeof(counts) / sizeof(counts[0])
};

/* Every function, order, number of sources and kind of place; what is left takes turns. */
static int run_all(struct gpu *gpu, rondo_type type, char *complaint, size_t size)
{
    int wrong = 0;

    for (int i = 0; i < KERNEL_USER * SOURCE_COUNTS * 2 * DUEL_PLACES; i++) {
        int turn = i * 7 + i / 31;
        struct duel duel = {
            .op = {.type = type, .function = (enum kernel_function)(i % KERNEL_USER)},
            .sources = source_counts[i / KERNEL_USER % SOURCE_COUNTS],
            .order = i / KERNEL_USER / SOURCE_COUNTS % 2 ? KERNEL_BALANCED : KERNEL_FOLD,
            .place = (enum duel_place)(i / KERNEL_USER / SOURCE_COUNTS / 2),
            .count = counts[turn % COUNTS],
            .destinations = 1 + turn / 3 % 3,
            .in_place = turn % 5 == 0,
            .scaled = -1,
            .blocks = (unsigned)(turn % 4),
            .random = (uint64_t)i,
        };
        if (kernel_can(type, duel.op.function) &&
            !duel_run(gpu, &duel, wrong ? NULL : complaint, wrong ? 0 : size))
            wrong++;
    }
    return wrong;
}

ParameterizedTestParameters(cuda_reduce, every_function_has_the_bits_of_the_host)
{
    static int types[RONDO_TYPES];

    for (int i = 0; i < RONDO_TYPES; i++)
        types[i] = i;
    return cr_make_param_array(int, types, RONDO_TYPES);
}

ParameterizedTest(int *type, cuda_reduce, every_function_has_the_bits_of_the_host)
{
    char complaint[512] = "";
    struct gpu gpu;
    int wrong;

    cr_assert(gpu_open(&gpu), "%s", fail_sentence());
    wrong = run_all(&gpu, (rondo_type)*type, complaint, sizeof(complaint));
    gpu_close(&gpu);
    cr_assert_eq(wrong, 0, "%d calls are wrong, first: %s", wrong, complaint);
}

static int run_scaled(struct gpu *gpu, rondo_type type, char *complaint, size_t size)
{
    static const unsigned divisors[] = {0, 1, 2, 3, 7, 100000, 4000000000};
    int wrong = 0;

    for (int i = 0; i < 7 * 3 * SOURCE_COUNTS * 2; i++) {
        int k = source_counts[i / 21 % SOURCE_COUNTS];
        int scaled[] = {-1, 0, k - 1};
        struct duel duel = {
            .op = {.type = type,
                   .function = (enum kernel_function)(i % 5 ? KERNEL_SUM : i % 4),
                   .has_scale = i % 11 != 0,
                   .restore = i % 17 < 8 ? 4 : 0,
                   .divisor = divisors[i % 7]},
            .sources = k,
            .order = i / 21 / SOURCE_COUNTS ? KERNEL_BALANCED : KERNEL_FOLD,
            .place = (enum duel_place)(i % DUEL_PLACES),
            .count = counts[i / 3 % COUNTS],
            .destinations = 1 + i % 3,
            .in_place = i % 2,
            .scaled = scaled[i / 7 % 3],
            .finish = i % 13 != 0,
            .random = (uint64_t)i,
        };
        if (reference_is_integer(type))
            duel.op.scale.integer = i % 2 ? -3 : 5;
        else
            duel.op.scale.real = i % 2 ? -0.75 : 0.1;
        if (!duel_run(gpu, &duel, wrong ? NULL : complaint, wrong ? 0 : size))
            wrong++;
    }
    return wrong;
}

ParameterizedTestParameters(cuda_reduce, scaled_inputs_and_averages_have_the_bits_of_the_host)
{
    static int types[RONDO_TYPES];

    for (int i = 0; i < RONDO_TYPES; i++)
        types[i] = i;
    return cr_make_param_array(int, types, RONDO_TYPES);
}

ParameterizedTest(int *type, cuda_reduce, scaled_inputs_and_averages_have_the_bits_of_the_host)
{
    char complaint[512] = "";
    struct gpu gpu;
    int wrong;

    cr_assert(gpu_open(&gpu), "%s", fail_sentence());
    wrong = run_scaled(&gpu, (rondo_type)*type, complaint, sizeof(complaint));
    gpu_close(&gpu);
    cr_assert_eq(wrong, 0, "%d calls are wrong, first: %s", wrong, complaint);
}

Test(cuda_reduce, many_destinations_and_long_counts_have_the_bits_of_the_host)
{
    char complaint[512] = "";
    struct gpu gpu;
    int wrong = 0;

    cr_assert(gpu_open(&gpu), "%s", fail_sentence());
    for (int i = 0; i < 3 * RONDO_TYPES; i++) {
        struct duel duel = {.op = {.type = (rondo_type)(i % RONDO_TYPES)},
                            .sources = (const int[]){1, 3, 64}[i / RONDO_TYPES],
                            .destinations = (const int[]){64, 2, 64}[i / RONDO_TYPES],
                            .order = KERNEL_BALANCED,
                            .count = (const size_t[]){99, 70001, 999}[i / RONDO_TYPES],
                            .place = (enum duel_place)(i % DUEL_PLACES),
                            .scaled = -1,
                            .random = (uint64_t)i};
        wrong += !duel_run(&gpu, &duel, wrong ? NULL : complaint, wrong ? 0 : sizeof(complaint));
    }
    gpu_close(&gpu);
    cr_assert_eq(wrong, 0, "%d calls are wrong, first: %s", wrong, complaint);
}

Test(cuda_reduce, what_no_kernel_can_do_is_refused)
{
    struct gpu gpu;
    struct kernel_op user = {.type = RONDO_FLOAT32, .function = KERNEL_USER};
    struct kernel_op sum = {.type = RONDO_FLOAT32, .function = KERNEL_SUM};
    struct cuda_reduce_call call = {.source_count = 1, .destination_count = 1, .count = 1};

    cr_assert(gpu_open(&gpu), "%s", fail_sentence());
    cr_expect_not(cuda_reduce_can(&user));
    cr_expect(cuda_reduce_can(&sum));
    cr_expect_eq(cuda_reduce(gpu.launcher, &user, &call, gpu.stream), RONDO_ERROR_UNSUPPORTED);
    call.source_count = CUDA_SOURCES_MAX + 1;
    cr_expect_eq(cuda_reduce(gpu.launcher, &sum, &call, gpu.stream), RONDO_ERROR_INTERNAL);
    gpu_close(&gpu);
}
