/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - what a process writes down of its calls and their steps when RONDO_TRACE is set, for
 * `rondo trace` to read (page.h).
 *
 * An event of a call is a look at the clock and 32 bytes that are stored: no system call, no lock,
 * and no more memory than the ring has. The oldest events are overwritten.
 */
#ifndef RONDO_BASE_TRACE_TRACE_H
#define RONDO_BASE_TRACE_TRACE_H

#include "base/trace/page.h"

#include <time.h>

/* A communicator writes its events with this; one thread at a time does. */
struct trace {
    struct trace_event *next, *end; /* in the piece of the ring that it has taken */
    uint64_t expires;        /* events taken by all when that piece is about to be another's */
    struct trace_page *page; /* of the process */
    uint16_t comm;
    uint32_t calls; /* that have begun */
    /* Names that were used lately, each for one kind of call. */
    struct trace_known {
        const void *kind, *algorithm;
        uint32_t fingerprint, name;
    } known[64];
};

/* Begins to trace a communicator. NULL: RONDO_TRACE is not set, or the file cannot be made, as the
 * log says. The file belongs to the process, and is named after its first rank. */
struct trace *trace_open(uint64_t comm, int rank, int size, uint64_t machine);
void trace_close(struct trace *trace); /* NULL: does nothing */
/* Returns the number of a name in the table. Any thread. */
uint32_t trace_name(struct trace *trace, const char *name);
/* Takes the next piece of the ring. */
void trace_take_piece(struct trace *trace);

/* Adds an event of the communicator, whose time is now. */
static inline void trace_add(struct trace *trace, struct trace_event event)
{
    struct timespec now;

    if (trace->next == trace->end ||
        atomic_load_explicit(&trace->page->header.taken, memory_order_relaxed) >= trace->expires)
        trace_take_piece(trace);
    clock_gettime(CLOCK_MONOTONIC, &now);
    event.when = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    event.comm = trace->comm;
    *trace->next++ = event;
}

#endif
