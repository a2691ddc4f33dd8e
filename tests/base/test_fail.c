/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fail.c - the sentence of the last error. */
#include "base/fail.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

Test(fail, a_thread_without_errors_has_an_empty_sentence)
{
    cr_assert_str_eq(fail_sentence(), "");
}

Test(fail, the_result_comes_back_and_the_sentence_stays)
{
    cr_assert_eq(rondo_fail(RONDO_ERROR_PEER, "rank %d is gone", 3), RONDO_ERROR_PEER);
    cr_assert_str_eq(fail_sentence(), "rank 3 is gone");
    cr_assert_eq(rondo_fail(RONDO_ERROR_INVALID, "again: %s", fail_sentence()),
                 RONDO_ERROR_INVALID);
    cr_assert_str_eq(fail_sentence(), "again: rank 3 is gone");
    fail_clear();
    cr_assert_str_eq(fail_sentence(), "");
}

Test(fail, errno_is_told_in_words)
{
    errno = ENOENT;
    cr_assert_eq(rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot open %s", "x"), RONDO_ERROR_SYSTEM);
    cr_assert_str_eq(fail_sentence(), "cannot open x: No such file or directory");
}

Test(fail, a_sentence_that_is_too_long_is_cut)
{
    static char text[3 * FAIL_SENTENCE_MAX];

    memset(text, 'a', sizeof(text) - 1);
    rondo_fail(RONDO_ERROR_INTERNAL, "%s", text);
    cr_assert_eq(strlen(fail_sentence()), FAIL_SENTENCE_MAX - 1);
    errno = EINVAL;
    rondo_fail_errno(RONDO_ERROR_INTERNAL, "%s", text);
    cr_assert_eq(strlen(fail_sentence()), FAIL_SENTENCE_MAX - 1);
}

static void *in_another_thread(void *ret_was_empty)
{
    *(bool *)ret_was_empty = !*fail_sentence();
    rondo_fail(RONDO_ERROR_INTERNAL, "of another thread");
    return NULL;
}

Test(fail, each_thread_has_its_own_sentence)
{
    pthread_t thread;
    bool was_empty = false;

    rondo_fail(RONDO_ERROR_PEER, "of this thread");
    cr_assert_eq(pthread_create(&thread, NULL, in_another_thread, &was_empty), 0);
    pthread_join(thread, NULL);
    cr_assert(was_empty);
    cr_assert_str_eq(fail_sentence(), "of this thread");
}
