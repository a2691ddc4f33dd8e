/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_sizes.c - sizes as people write them. */
#include "cli/bench/options.h"

#include <criterion/criterion.h>

static struct bench_options options; /* too large for a comfortable stack frame */

Test(bench_sizes, a_size_is_a_number_and_perhaps_a_unit)
{
    cr_assert(!bench_sizes_parse("8,4K,64m,2G,1KB", 2, &options));
    cr_expect_eq(options.size_count, 5);
    cr_expect_eq(options.sizes[0], 8);
    cr_expect_eq(options.sizes[1], 4096);
    cr_expect_eq(options.sizes[2], (size_t)64 << 20);
    cr_expect_eq(options.sizes[3], (size_t)2 << 30);
    cr_expect_eq(options.sizes[4], 1024);
}

Test(bench_sizes, what_is_no_size_is_refused)
{
    static const char *const bad[] = {"",
                                      "K",
                                      "-8",
                                      "8X",
                                      "8KX",
                                      " 8",
                                      "8 ",
                                      "1.5K",
                                      "0x8",
                                      "99999999999999999999",
                                      "9999999999T",
                                      "9223372036854775808",
                                      "00000000000000000000000000000008"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect(bench_sizes_parse(bad[i], 2, &options), "'%s' was taken", bad[i]);
}

Test(bench_sizes, a_range_goes_up_by_the_factor_and_ends_within)
{
    cr_assert(!bench_sizes_parse("8:64M", 2, &options));
    cr_expect_eq(options.size_count, 24);
    cr_expect_eq(options.sizes[0], 8);
    cr_expect_eq(options.sizes[23], (size_t)64 << 20);
    cr_assert(!bench_sizes_parse("1K:100K", 8, &options));
    cr_expect_eq(options.size_count, 3);
    cr_expect_eq(options.sizes[2], 65536);
    cr_assert(!bench_sizes_parse("16:16", 2, &options));
    cr_expect_eq(options.size_count, 1);
}

Test(bench_sizes, a_list_keeps_its_order)
{
    cr_assert(!bench_sizes_parse("1M,4K,100", 2, &options));
    cr_expect_eq(options.size_count, 3);
    cr_expect_eq(options.sizes[0], (size_t)1 << 20);
    cr_expect_eq(options.sizes[1], 4096);
    cr_expect_eq(options.sizes[2], 100);
}

Test(bench_sizes, bad_ranges_and_lists_are_refused)
{
    static const char *const bad[] = {"64:8", "8:", ":8",    "8:16:32", "0:8",
                                      "8,",   ",8", "8,,16", "8,16:32", "0"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect(bench_sizes_parse(bad[i], 2, &options), "'%s' was taken", bad[i]);
    cr_expect(bench_sizes_parse("8:64", 1, &options), "a factor of 1 never ends");
    cr_expect(bench_sizes_parse("1:1G", 1.001, &options), "more sizes than there is room for");
}
