/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_collective.c - lengths and bandwidths of bench/collective.c. */
#include "bench/collective.h"

#include <criterion/criterion.h>

#define NEAR(a, b) ((a) - (b) < 1e-12 && (b) - (a) < 1e-12)

Test(bench_collective, every_name_finds_its_collective)
{
    for (int i = 0; i < BENCH_QUESTIONS; i++)
        cr_expect_eq(bench_collective_find(bench_collective_name((enum bench_collective)i)), i);
    cr_expect_eq(bench_collective_find("allreduce"), -1);
}

Test(bench_collective, bus_factors_are_those_of_nccl_tests)
{
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_REDUCE, 4), 1.5));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_REDUCE, 2), 1.0));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_REDUCE, 1), 0.0));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_GATHER, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_REDUCE_SCATTER, 8), 0.875));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_TO_ALL, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_GATHER, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_SCATTER, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_GATHER_V, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_REDUCE_SCATTER_V, 8), 0.875));
    cr_expect(NEAR(bench_bus_factor(BENCH_ALL_TO_ALL_V, 4), 0.75));
    cr_expect(NEAR(bench_bus_factor(BENCH_BROADCAST, 4), 1.0));
    cr_expect(NEAR(bench_bus_factor(BENCH_REDUCE, 4), 1.0));
    cr_expect(NEAR(bench_bus_factor(BENCH_SENDRECV, 4), 1.0));
}

Test(bench_collective, a_size_is_that_of_the_full_vector)
{
    cr_expect_eq(bench_count(BENCH_ALL_REDUCE, 1024, 4, 4), 256);
    cr_expect_eq(bench_count(BENCH_ALL_GATHER, 1024, 4, 4), 64);
    cr_expect_eq(bench_count(BENCH_ALL_GATHER, 64, 4, 3), 5); /* rounded down ... */
    cr_expect_eq(bench_bytes(BENCH_ALL_GATHER, 5, 4, 3), 60); /* ... and reported as it is */
    cr_expect_eq(bench_count(BENCH_REDUCE_SCATTER, 8, 4, 4), 0);
    cr_expect_eq(bench_bytes(BENCH_REDUCE, 5, 8, 3), 40);
    cr_expect_eq(bench_count(BENCH_BARRIER, 1024, 4, 4), 0);
}

Test(bench_collective, buffers_are_as_long_as_the_public_header_says)
{
    struct bench_call call = {.collective = BENCH_ALL_GATHER, .count = 10};

    cr_expect_eq(bench_input_elements(&call, 3), 10);
    cr_expect_eq(bench_output_elements(&call, 3), 30);
    cr_expect_eq(bench_in_place_offset(&call, 2), 20);
    call.collective = BENCH_REDUCE_SCATTER;
    cr_expect_eq(bench_input_elements(&call, 3), 30);
    cr_expect_eq(bench_output_elements(&call, 3), 10);
    cr_expect_eq(bench_in_place_offset(&call, 1), 10);
    call.collective = BENCH_ALL_TO_ALL;
    cr_expect_eq(bench_input_elements(&call, 3), 30);
    cr_expect_eq(bench_in_place_offset(&call, 1), 0);
    call.collective = BENCH_REDUCE_SCATTER_V;
    cr_expect_eq(bench_input_elements(&call, 3), 30);
    cr_expect_eq(bench_in_place_offset(&call, 1), 10);
}
