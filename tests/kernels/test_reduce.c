/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reduce.c - every type, function, order and number of sources, on every level, against the
 * obvious reference.
 */
#include "tests/kernels/reference.h"
#include "tests/kernels/trial.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const int source_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33};
enum { SOURCE_COUNTS = sizeof(source_counts) / sizeof(source_counts[0]) };

/* Every function and number of sources for one type; the destinations go round from 1 to 3, but
 * two sources have one destination and two, which are ways of their own. */
static int run_all(rondo_type type, bool small, char *complaint, size_t size)
{
    int wrong = 0;

    for (int function = 0; function < KERNEL_FUNCTIONS; function++) {
        if (!kernel_can(type, (enum kernel_function)function))
            continue;
        for (int i = 0; i < 2 * SOURCE_COUNTS; i++) {
            int sources = source_counts[i / 2];
            struct trial trial = {
                .op = {.type = type, .function = (enum kernel_function)function},
                .source_count = sources,
                .destination_count = sources == 2 ? 1 + i % 2 : 1 + (i / 2 + function) % 3,
                .order = i % 2 ? KERNEL_BALANCED : KERNEL_FOLD,
                .scaled = -1,
                .small = small,
                .random = (uint64_t)(i * 100 + function),
            };
            trial.op.user = reference_user;
            wrong += trial_run(&trial, 1, wrong ? NULL : complaint, wrong ? 0 : size);
        }
    }
    return wrong;
}

ParameterizedTestParameters(reduce, every_function_gives_the_reference_on_edge_values)
{
    static int types[RONDO_TYPES];

    for (int i = 0; i < RONDO_TYPES; i++)
        types[i] = i;
    return cr_make_param_array(int, types, RONDO_TYPES);
}

ParameterizedTest(int *type, reduce, every_function_gives_the_reference_on_edge_values)
{
    char complaint[256] = "";
    int wrong = run_all((rondo_type)*type, false, complaint, sizeof(complaint));

    cr_assert_eq(wrong, 0, "%d calls are wrong, first: %s", wrong, complaint);
}

Test(reduce, small_whole_numbers_are_exact_in_every_type)
{
    char complaint[256] = "";

    for (int type = 0; type < RONDO_TYPES; type++) {
        for (int k = 2; k <= 4; k++) {
            struct trial trial = {.op = {.type = (rondo_type)type, .function = KERNEL_SUM},
                                  .source_count = k,
                                  .destination_count = 2,
                                  .scaled = -1,
                                  .small = true,
                                  .random = 7};
            cr_assert_eq(trial_run(&trial, 1, complaint, sizeof(complaint)), 0, "%s", complaint);
        }
    }
}

/* Every combination of scaling a source and dividing the result. */
static int run_scaled(rondo_type type, char *complaint, size_t size)
{
    static const int counts[] = {1, 2, 3, 4, 5, 8, 9, 17};
    static const unsigned divisors[] = {0, 1, 2, 3, 7, 100000};
    int wrong = 0;

    for (int i = 0; i < 8 * 6 * 3; i++) {
        int k = counts[i / 18];
        int scaled[] = {-1, 0, k - 1};
        struct trial trial = {
            .op = {.type = type,
                   .function = KERNEL_SUM,
                   .has_scale = true,
                   .restore = i % 5 < 2 ? 8 : 0,
                   .divisor = divisors[i / 3 % 6]},
            .source_count = k,
            .destination_count = 1 + i % 3,
            .order = i % 4 < 2 ? KERNEL_FOLD : KERNEL_BALANCED,
            .scaled = scaled[i % 3],
            .finish = true,
            .random = (uint64_t)i,
        };
        if (reference_is_integer(type))
            trial.op.scale.integer = i % 2 ? -3 : 5;
        else
            trial.op.scale.real = i % 2 ? -0.75 : (double)0.1f;
        wrong += trial_run(&trial, 3, wrong ? NULL : complaint, wrong ? 0 : size);
    }
    return wrong;
}

ParameterizedTestParameters(reduce, scaled_inputs_and_averages_round_as_the_reference)
{
    static int types[RONDO_TYPES];

    for (int i = 0; i < RONDO_TYPES; i++)
        types[i] = i;
    return cr_make_param_array(int, types, RONDO_TYPES);
}

ParameterizedTest(int *type, reduce, scaled_inputs_and_averages_round_as_the_reference)
{
    char complaint[256] = "";
    int wrong = run_scaled((rondo_type)*type, complaint, sizeof(complaint));

    cr_assert_eq(wrong, 0, "%d calls are wrong, first: %s", wrong, complaint);
}

/* Counts beyond one tile and one piece, where offsets must add up. */
Test(reduce, long_counts_are_cut_without_a_seam)
{
    static const size_t counts[] = {511, 512, 513, 1024, 4097, 9000};
    char complaint[256] = "";

    for (int i = 0; i < RONDO_TYPES * 6 * 3; i++) {
        const char *const *levels = kernel_levels();
        int last = 0;
        struct trial trial = {.op = {.type = (rondo_type)(i / 18), .function = KERNEL_SUM},
                              .source_count = (const int[]){2, 5, 11}[i % 3],
                              .destination_count = 1 + i % 2,
                              .order = i % 4 < 2 ? KERNEL_FOLD : KERNEL_BALANCED,
                              .scaled = -1,
                              .random = (uint64_t)i};
        while (levels[last + 1] != NULL)
            last++;
        cr_assert_eq(trial_run_long(&trial, levels[i % 2 ? last : last / 2], counts[i / 3 % 6],
                                    complaint, sizeof(complaint)),
                     0, "%s", complaint);
    }
}

static float reduce_floats(enum kernel_order order, int k, const float *values)
{
    const struct kernel_op op = {.type = RONDO_FLOAT32, .function = KERNEL_SUM};
    const void *sources[REFERENCE_SOURCES_MAX];
    float result = NAN;
    void *destinations[] = {&result};
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = k,
                               .destination_count = 1,
                               .count = 1,
                               .order = order,
                               .scaled = -1};

    for (int i = 0; i < k; i++)
        sources[i] = &values[i];
    kernel_reduce(&op, &call);
    return result;
}

Test(reduce, order_of_addition_is_the_one_that_was_asked_for)
{
    /* 1e8 swallows a 1, but not 1 + 1 + ... : worked out by hand. */
    const float four[] = {1e8f, 3, -1e8f, 3}; /* ulp of 1e8 is 8: 1e8 + 3 = 1e8 */
    const float five[] = {1e8f, -1e8f, 3, 1e8f, -1e8f};
    const float nine[] = {0, 0, 0, 0, 0, 0, 0, 1e8f, -1e8f};

    for (const char *const *level = kernel_levels(); *level != NULL; level++) {
        kernel_use_level(*level);
        cr_expect_eq(reduce_floats(KERNEL_FOLD, 4, four), 3.0f);
        cr_expect_eq(reduce_floats(KERNEL_BALANCED, 4, four), 0.0f);
        cr_expect_eq(reduce_floats(KERNEL_FOLD, 5, five), 0.0f);
        cr_expect_eq(reduce_floats(KERNEL_BALANCED, 5, five), 0.0f);
        cr_expect_eq(reduce_floats(KERNEL_BALANCED, 9, nine), 0.0f);
    }
}

Test(reduce, average_of_negative_integers_truncates_towards_zero)
{
    const struct kernel_op op = {.type = RONDO_INT32, .function = KERNEL_SUM, .divisor = 4};
    int32_t a[] = {-3, 3, -4, -7, INT32_MIN}, b[] = {-4, 4, 0, 0, -4}, out[5];
    const void *sources[] = {a, b};
    void *destinations[] = {out};
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = 2,
                               .destination_count = 1,
                               .count = 5,
                               .order = KERNEL_FOLD,
                               .scaled = -1,
                               .finish = true};

    kernel_reduce(&op, &call);
    cr_assert_eq(out[0], -1);
    cr_assert_eq(out[1], 1);
    cr_assert_eq(out[2], -1);
    cr_assert_eq(out[3], -1);
    cr_assert_eq(out[4], INT32_MAX / 4 - 0); /* wrapped first: INT32_MIN - 4 = INT32_MAX - 3 */
}

Test(reduce, smallest_and_largest_know_nan_and_the_sign_of_zero)
{
    float a[] = {NAN, 1, 0.0f, -0.0f, -0.0f, -INFINITY}, b[] = {1, -NAN, -0.0f, 0.0f, -0.0f, 1};
    float out[6];
    const void *sources[] = {a, b};
    void *destinations[] = {out};
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = 2,
                               .destination_count = 1,
                               .count = 6,
                               .order = KERNEL_FOLD,
                               .scaled = -1};
    struct kernel_op op = {.type = RONDO_FLOAT32, .function = KERNEL_MIN};

    for (const char *const *level = kernel_levels(); *level != NULL; level++) {
        kernel_use_level(*level);
        op.function = KERNEL_MIN;
        kernel_reduce(&op, &call);
        cr_expect(isnan(out[0]) && !signbit(out[0]) && isnan(out[1]) && !signbit(out[1]));
        cr_expect(out[2] == 0 && signbit(out[2]) && signbit(out[3]) && signbit(out[4]));
        cr_expect_eq(out[5], -INFINITY);
        op.function = KERNEL_MAX;
        kernel_reduce(&op, &call);
        cr_expect(isnan(out[0]) && isnan(out[1]));
        cr_expect(out[2] == 0 && !signbit(out[2]) && !signbit(out[3]) && signbit(out[4]));
        cr_expect_eq(out[5], 1);
    }
}

/* in is the left side, inout the right one: bytes of the sources, in brackets as combined. */
static void write_down(void *context, const void *in, void *inout, size_t count, rondo_type type)
{
    char text[128];
    char *log = context;

    (void)count;
    (void)type;
    snprintf(text, sizeof(text), "%d+%d ", *(const uint8_t *)in, *(uint8_t *)inout);
    strcat(log, text);
    *(uint8_t *)inout = (uint8_t)(*(const uint8_t *)in * 10 + *(uint8_t *)inout);
}

Test(reduce, user_functions_get_lower_ranks_first_in_both_orders)
{
    char log[256] = "";
    struct kernel_op op = {
        .type = RONDO_UINT8, .function = KERNEL_USER, .user = write_down, .context = log};
    const uint8_t values[] = {1, 2, 3, 4, 5};
    uint8_t out = 0;
    const void *sources[] = {&values[0], &values[1], &values[2], &values[3], &values[4]};
    void *destinations[] = {&out};
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = 3,
                               .destination_count = 1,
                               .count = 1,
                               .order = KERNEL_FOLD,
                               .scaled = -1};

    kernel_reduce(&op, &call);
    cr_assert_str_eq(log, "1+2 12+3 ");
    cr_assert_eq(out, 123);
    log[0] = '\0';
    call.source_count = 5;
    call.order = KERNEL_BALANCED;
    kernel_reduce(&op, &call);
    cr_assert_str_eq(log, "1+2 3+4 12+34 154+5 ");
}

Test(reduce, bitwise_functions_are_for_integers_only)
{
    for (int type = 0; type < RONDO_TYPES; type++) {
        bool integer = reference_is_integer((rondo_type)type);

        cr_expect_eq(kernel_can((rondo_type)type, KERNEL_BAND), integer);
        cr_expect_eq(kernel_can((rondo_type)type, KERNEL_BOR), integer);
        cr_expect_eq(kernel_can((rondo_type)type, KERNEL_BXOR), integer);
        cr_expect(kernel_can((rondo_type)type, KERNEL_SUM));
        cr_expect(kernel_can((rondo_type)type, KERNEL_USER));
    }
    cr_expect_not(kernel_can(RONDO_TYPES, KERNEL_SUM));
    cr_expect_not(kernel_can(RONDO_INT8, KERNEL_FUNCTIONS));
}
