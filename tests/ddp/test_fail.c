/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fail.c - sentences of errors of the data-parallel layer. */
#include <rondo/ddp.h>

#include <criterion/criterion.h>

Test(ddp_fail, there_is_no_sentence_before_the_first_error)
{
    cr_assert_str_eq(rondo_ddp_last_error(), "");
}
