/* SPDX-License-Identifier: BSD-3-Clause */
/* failures.h - ranks that die, fall silent or give up, while the others are busy. */
#ifndef RONDO_TESTS_API_FAILURES_H
#define RONDO_TESTS_API_FAILURES_H

#include "../world.h"

#include <stdatomic.h>

/* In shared memory. */
struct failures {
    int culprit;                 /* the rank that does it */
    rondo_collective collective; /* what all do until then */
    const char *algorithm;       /* a literal; NULL: as configured */
    size_t count;
    int calls;           /* good ones, before */
    _Atomic int ended;   /* ranks whose call has ended */
    double died;         /* when, by the monotonic clock */
    bool stops;          /* the culprit of a chain: in its call; else it makes none */
    _Atomic int process; /* that has stopped */
    double timeout;      /* seconds that ranks of a chain wait; 0: the setting */
    double noticed[WORLD_RANKS];
};

/* Calls without end; the culprit kills itself with SIGKILL after `calls`. For processes. */
rondo_result failures_die(rondo_comm *comm, void *argument, char *sentence);
/* The culprit stops calling, until all others have ended. */
rondo_result failures_fall_silent(rondo_comm *comm, void *argument, char *sentence);
/* Each rank waits for a message of the next one's, those farthest from the culprit first: they are
 * the first to give up. */
rondo_result failures_wait_in_chain(rondo_comm *comm, void *argument, char *sentence);
/* One rank does not call, so all wait; then a second thread
 * of the culprit aborts the communicator. */
rondo_result failures_abort(rondo_comm *comm, void *argument, char *sentence);
/* Copies are made of a copy until one rank after the other aborts that, `calls` times. All hear of
 * it at once, and the original stays sound. */
rondo_result failures_abort_in_dup(rondo_comm *comm, void *argument, char *sentence);

#endif
