/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - what a process writes down of its calls and their steps when RONDO_TRACE is set, or
 * adds up of them when RONDO_PROFILE is, for `rondo trace` to read (page.h).
 *
 * An event of a call is a look at the clock and 32 bytes that are stored: no system call, no lock,
 * and no more memory than the ring has. The oldest events are overwritten; sums are of all calls.
 */
#ifndef RONDO_BASE_TRACE_TRACE_H
#define RONDO_BASE_TRACE_TRACE_H

#include "base/caller/times.h"
#include "base/trace/page.h"

#include <stdbool.h>

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

/* Begins to trace a communicator. NULL: neither setting is there, or the file can't be made, as the
 * log says. The file belongs to the process, and is named after its first rank. */
struct trace *trace_open(uint64_t comm, int rank, int size, uint64_t machine);
/* Another writer beside it, for another thread; calls of different writers have different kinds of
 * events, or numbers of their own. NULL: out of memory. */
struct trace *trace_open_beside(const struct trace *trace);
void trace_close(struct trace *trace); /* NULL: does nothing */
/* Returns the number of a name in the table. Any thread. */
uint32_t trace_name(struct trace *trace, const char *name);
/* Says what the calls of a name are; the sums in `what` do not count. Any thread. */
void trace_describe(struct trace *trace, uint32_t name, const struct trace_sum *what);
bool trace_is_described(struct trace *trace, uint32_t name);
/* Adds a call that has ended to the sums of its name. Any thread. */
void trace_add_up(struct trace *trace, uint32_t name, uint64_t nanoseconds);
/* Takes the next piece of the ring. */
void trace_take_piece(struct trace *trace);

/* False: events are not kept, calls are only added up. */
static inline bool trace_has_ring(const struct trace *trace)
{
    return trace->page->header.room != 0;
}

/* Adds an event of the communicator, with its time, if events are kept. */
static inline void trace_add(struct trace *trace, struct trace_event event)
{
    if (!trace_has_ring(trace))
        return;
    if (trace->next == trace->end ||
        atomic_load_explicit(&trace->page->header.taken, memory_order_relaxed) >= trace->expires)
        trace_take_piece(trace);
    event.comm = trace->comm;
    __builtin_prefetch(trace->next + 4, 1); /* the ring is longer than caches are */
    *trace->next++ = event;
}

#endif
