/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail.h - errors are sentences.
 *
 * The first function to know about an error describes it with rondo_fail(), everybody above only
 * returns the result. The sentence is kept per thread; comm/ copies it into the communicator that
 * the call was made on.
 */
#ifndef RONDO_BASE_FAIL_H
#define RONDO_BASE_FAIL_H

#include "rondo/rondo.h"

/* Bytes, with the final 0; longer sentences are cut. compat/heap/heap.c relies on it, and on
 * fail_sentence() being in memory of this thread. */
#define FAIL_SENTENCE_MAX 1024

/* Remember the sentence for this thread, log it at level "info", return `result`. */
rondo_result rondo_fail(rondo_result result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Does as rondo_fail(), with ": <what errno says>" at the end; errno is read first. */
rondo_result rondo_fail_errno(rondo_result result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The calling thread's last sentence; "" if there was none. */
const char *fail_sentence(void);
void fail_clear(void);

#endif
