/* SPDX-License-Identifier: BSD-3-Clause */
/* spans.h - which pages of the heap are in use: a sorted
 * list of spans, first fit. Not thread-safe. */
#ifndef RONDO_TRANSPORT_MEMORY_SPANS_H
#define RONDO_TRANSPORT_MEMORY_SPANS_H

#include <stdbool.h>
#include <stddef.h>

struct span {
    size_t start, length; /* pages */
};

struct spans {
    struct span *used; /* sorted by start */
    size_t count, room;
    size_t pages;
};

/* First page of `length` free ones, or `pages` if there is
 * no such place or no memory to note it. */
size_t spans_take(struct spans *spans, size_t length);
/* Takes pages as spans_take() does, with the first page at a multiple of `multiple`. */
size_t spans_take_at(struct spans *spans, size_t length, size_t multiple);
/* The length of the span that begins at `start`, which is free from now on; 0: there is none. */
size_t spans_give(struct spans *spans, size_t start);
/* The length of the span that begins at `start`; 0: there is none. */
size_t spans_length(const struct spans *spans, size_t start);
/* The span that holds the page; of length 0: there is none. */
struct span spans_holding(const struct spans *spans, size_t page);
void spans_done(struct spans *spans);

#endif
