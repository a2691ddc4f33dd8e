/* SPDX-License-Identifier: BSD-3-Clause */
/* test_repeat.c - calls that take the short way, see repeat_bodies.c. */
#include "repeat_bodies.h"

#include <criterion/criterion.h>

static void expect_null(const char *wrong)
{
    cr_expect_null(wrong, "%s", wrong);
}

Test(repeat, repetitions_do_what_is_asked)
{
    expect_null(repetitions_do_what_is_asked(150));
}

Test(repeat, repetitions_outlive_their_choices)
{
    expect_null(repetitions_outlive_their_choices());
}

Test(repeat, threads_repeat_each_other)
{
    expect_null(threads_repeat_each_other(2000));
}

Test(repeat, a_repetition_meets_another_call)
{
    expect_null(a_repetition_meets_another_call());
}

Test(repeat, a_repetition_ends_with_its_peer)
{
    expect_null(a_repetition_ends_with_its_peer());
}
