/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - for programs that end with their first error.
 *
 *     RONDO_CHECK(rondo_comm_open(NULL, &comm));
 *
 * Where the call returns anything but RONDO_OK, "FILE:LINE: SENTENCE" goes to stderr, with the
 * sentence of rondo_last_error(NULL), and exit(1) ends the program, whichever thread it is in. The
 * other ranks hear that this one is gone. RONDO_IN_PROGRESS ends it, too: compare what queries
 * return. The call is evaluated once. A program that goes on after an error (docs/recovery.md), and
 * a library, look at the result themselves.
 */
#ifndef RONDO_CHECK_H
#define RONDO_CHECK_H

#include "rondo/rondo.h"

#include <stdio.h>
#include <stdlib.h>

#define RONDO_CHECK(call) RONDO_CHECK_BY(rondo_last_error(NULL), call)

/* RONDO_DDP_CHECK() is for the functions of ddp.h, train.h and elastic.h, which have their own
 * sentences. A program that uses it includes one of them. */
#define RONDO_DDP_CHECK(call) RONDO_CHECK_BY(rondo_ddp_last_error(), call)

/* Both are made of this: the sentence is asked for after the call. */
#define RONDO_CHECK_BY(sentence, call)                                         \
    do {                                                                       \
        const rondo_result rondo_checked = (call);                             \
                                                                               \
        if (rondo_checked)                                                     \
            rondo_check_failed(rondo_checked, (sentence), __FILE__, __LINE__); \
    } while (0)

/* The end of a program whose call returned `result`: RONDO_CHECK() calls it. A result without a
 * sentence of its own is named. */
static __inline__ void __attribute__((noreturn))
rondo_check_failed(rondo_result result, const char *sentence, const char *file, int line)
{
    int named = result == RONDO_IN_PROGRESS || !*sentence;

    fprintf(stderr, "%s:%d: %s\n", file, line, named ? rondo_result_string(result) : sentence);
    exit(1);
}

#endif
