/* SPDX-License-Identifier: BSD-3-Clause */
/* test_level.c - which CPU level is used. */
#include "kernels/kernels.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *strongest(void)
{
    const char *const *level = kernel_levels();

    while (level[1] != NULL)
        level++;
    return *level;
}

Test(level, plain_is_always_there_and_comes_first)
{
    cr_assert_str_eq(kernel_levels()[0], "plain");
}

Test(level, strongest_one_is_used_without_a_setting)
{
    unsetenv("RONDO_CPU");
    cr_assert_str_eq(kernel_level(), strongest());
}

Test(level, environment_forces_one)
{
    setenv("RONDO_CPU", "plain", 1);
    cr_assert_str_eq(kernel_level(), "plain");
}

Test(level, one_that_this_machine_lacks_falls_back_to_the_strongest)
{
    setenv("RONDO_LOG", "none", 1);
    setenv("RONDO_CPU", strcmp(strongest(), "neon") == 0 ? "avx2" : "neon", 1);
    cr_assert_str_eq(kernel_level(), strongest());
}

Test(level, asking_for_one_uses_it_and_refuses_strangers)
{
    for (const char *const *level = kernel_levels(); *level != NULL; level++) {
        cr_expect(kernel_use_level(*level));
        cr_expect_str_eq(kernel_level(), *level);
    }
    cr_expect_not(kernel_use_level("abacus"));
    cr_expect_str_eq(kernel_level(), strongest());
}
