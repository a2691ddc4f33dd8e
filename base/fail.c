/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail.c - the sentence of this thread's last error.
 *
 * Sentences are built aside and then put in place: an argument may be the old sentence itself.
 */
#include "base/fail.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last[FAIL_SENTENCE_MAX];

static rondo_result remember(rondo_result result, const char *sentence)
{
    memcpy(last, sentence, strlen(sentence) + 1);
    log_info("%s", last);
    return result;
}

rondo_result rondo_fail(rondo_result result, const char *format, ...)
{
    char sentence[FAIL_SENTENCE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return remember(result, sentence);
}

rondo_result rondo_fail_errno(rondo_result result, const char *format, ...)
{
    int number = errno;
    char sentence[FAIL_SENTENCE_MAX];
    char reason[128];
    size_t length;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    length = strlen(sentence);
    snprintf(sentence + length, sizeof(sentence) - length, ": %s",
             strerror_r(number, reason, sizeof(reason)));
    return remember(result, sentence);
}

const char *fail_sentence(void)
{
    return last;
}

void fail_clear(void)
{
    last[0] = '\0';
}
