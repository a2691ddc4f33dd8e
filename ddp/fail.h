/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail.h - errors of this room are sentences, too: kept per thread for rondo_ddp_last_error().
 *
 * The first function to know about an error describes it with ddp_fail(); where a call of rondo.h
 * failed, ddp_fail_call() keeps what the library said and adds what it was done for.
 */
#ifndef RONDO_DDP_FAIL_H
#define RONDO_DDP_FAIL_H

#include <rondo/ddp.h>

enum { DDP_SENTENCE = 1024 }; /* bytes with the final 0; longer sentences are cut */

/* Remember the sentence for this thread, return `result`. */
rondo_result ddp_fail(rondo_result result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* RONDO_ERROR_INVALID, with a sentence about `function`, if `handle` is NULL, or if this thread has
 * a group open: calls of the function would only be collected, and their results be missing. */
rondo_result ddp_check_call(const void *handle, const char *function);
/* After a call on `comm` (may be NULL) that returned `result`: "WHAT: what the library said". */
rondo_result ddp_fail_call(rondo_result result, const rondo_comm *comm, const char *what);

/* A rank tells all ranks by it what went wrong there. */
struct ddp_news {
    int32_t result;
    char sentence[DDP_SENTENCE];
};

/* All ranks get the culprit's news. An error is that of the broadcast, of which nothing is said. */
rondo_result ddp_spread(struct ddp_news *news, int culprit, rondo_comm *comm);

#endif
