/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fast_path.c - calls that take the short way, see fast_path_bodies.c. */
#include "fast_path_bodies.h"

#include <criterion/criterion.h>

static void expect_null(const char *wrong)
{
    cr_expect_null(wrong, "%s", wrong);
}

Test(fast_path, repetitions_do_what_is_asked)
{
    expect_null(repetitions_do_what_is_asked(150));
}

Test(fast_path, repetitions_outlive_their_choices)
{
    expect_null(repetitions_outlive_their_choices());
}

Test(fast_path, threads_repeat_each_other)
{
    expect_null(threads_repeat_each_other(2000));
}

Test(fast_path, a_repetition_meets_another_call)
{
    expect_null(a_repetition_meets_another_call());
}

Test(fast_path, a_repetition_ends_with_its_peer)
{
    expect_null(a_repetition_ends_with_its_peer());
}

Test(fast_path, a_repetition_ends_in_a_communicator_that_is_closed)
{
    expect_null(a_repetition_ends_in_a_communicator_that_is_closed());
}
