/* SPDX-License-Identifier: BSD-3-Clause */
/* test_range.c - the one remainder rule. */
#include "base/range.h"

#include <criterion/criterion.h>
#include <stdint.h>

Test(range, parts_cover_the_count_without_gaps_and_differ_by_one_grain)
{
    for (size_t count = 0; count < 40; count++)
        for (size_t grain = 1; grain < 6; grain++)
            for (unsigned parts = 1; parts < 20; parts++) {
                size_t most = 0, least = SIZE_MAX;

                cr_assert_eq(range_start(count, grain, parts, 0), 0);
                cr_assert_eq(range_start(count, grain, parts, parts), count);
                for (unsigned i = 0; i < parts; i++) {
                    size_t start = range_start(count, grain, parts, i);
                    size_t end = range_start(count, grain, parts, i + 1);
                    size_t grains = (end - start + grain - 1) / grain;

                    cr_assert_leq(start, end);
                    cr_assert(start % grain == 0 || start == count);
                    most = grains > most ? grains : most;
                    least = grains < least ? grains : least;
                }
                cr_assert_leq(most - least, 1);
            }
}

Test(range, first_parts_take_the_remainder)
{
    cr_assert_eq(range_start(10, 1, 4, 1), 3);
    cr_assert_eq(range_start(10, 1, 4, 2), 6);
    cr_assert_eq(range_start(10, 1, 4, 3), 8);
    cr_assert_eq(range_start(2, 1, 4, 2), 2);
    cr_assert_eq(range_start(2, 1, 4, 3), 2);
}

Test(range, no_count_overflows)
{
    cr_assert_eq(range_start(SIZE_MAX, 1, 7, 7), SIZE_MAX);
    cr_assert_lt(range_start(SIZE_MAX, 1, 7, 6), SIZE_MAX);
}

Test(range, a_balanced_tree_splits_at_the_largest_power_of_two_below)
{
    static const int expected[] = {0, 1, 1, 2, 2, 4, 4, 4, 4, 8};

    for (int count = 1; count < 10; count++)
        cr_expect_eq(range_split(count), expected[count], "%d", count);
    cr_expect_eq(range_split(65536), 32768);
    cr_expect_eq(range_split(65537), 65536);
    cr_expect_eq(range_split(2147483647), 1073741824);
}
