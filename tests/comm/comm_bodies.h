/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_bodies.h - threaded parts of the tests of comm/,
 * which stress_comm runs under ThreadSanitizer too. */
#ifndef RONDO_TESTS_COMM_COMM_BODIES_H
#define RONDO_TESTS_COMM_COMM_BODIES_H

#include <stdbool.h>

/* A writer makes calls on a status page, a reader looks. NULL: no
 * record was mixed; else what was seen. */
const char *status_pages_are_never_torn(int calls);
/* The owner fails while a peer reads: the sentence is whole or not there. */
const char *failures_are_whole(int times);
/* A rank that closes a communicator stores nothing into memory of a peer any more when that may use
 * it for something else: the sanitizer finds a store that comes later. */
const char *closing_is_the_last_store(int times);
/* An event that is recorded on a busy stream, waited for, and recorded again on an idle one. */
const char *events_keep_their_point(void);
/* Streams of two ranks, events between them, everything closed while it is queued. */
const char *streams_close_while_queued(int times);
/* Functions on a stream close it; those queued behind them are still called. */
const char *streams_close_themselves(int times);
/* Both ranks of one thread's group make calls on streams and without. */
const char *groups_mix_streams_and_ranks(int times);

#endif
