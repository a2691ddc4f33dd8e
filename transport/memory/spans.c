/* SPDX-License-Identifier: BSD-3-Clause */
/* spans.c - first fit over a sorted array: allocations are few and large, lookups are rare. */
#include "transport/memory/spans.h"

#include <stdlib.h>
#include <string.h>

static bool insert(struct spans *spans, size_t index, struct span span)
{
    if (spans->count == spans->room) {
        size_t room = spans->room ? 2 * spans->room : 16;
        struct span *moved = realloc(spans->used, room * sizeof(*moved));

        if (!moved)
            return false;
        spans->used = moved;
        spans->room = room;
    }
    memmove(spans->used + index + 1, spans->used + index,
            (spans->count - index) * sizeof(*spans->used));
    spans->used[index] = span;
    spans->count++;
    return true;
}

size_t spans_take(struct spans *spans, size_t length)
{
    return spans_take_at(spans, length, 1);
}

/* True if a span of `length` fits between `start` and `end`. */
static bool fits(size_t start, size_t end, size_t length)
{
    return start <= end && end - start >= length;
}

size_t spans_take_at(struct spans *spans, size_t length, size_t multiple)
{
    size_t start = 0;
    size_t index;

    for (index = 0; index < spans->count; index++) {
        if (fits(start, spans->used[index].start, length))
            break;
        start = spans->used[index].start + spans->used[index].length;
        start = (start + multiple - 1) / multiple * multiple;
    }
    if (!fits(start, spans->pages, length) || !insert(spans, index, (struct span){start, length}))
        return spans->pages;
    return start;
}

size_t spans_give(struct spans *spans, size_t start)
{
    for (size_t i = 0; i < spans->count; i++) {
        size_t length = spans->used[i].length;

        if (spans->used[i].start != start)
            continue;
        spans->count--;
        memmove(spans->used + i, spans->used + i + 1, (spans->count - i) * sizeof(*spans->used));
        return length;
    }
    return 0;
}

size_t spans_length(const struct spans *spans, size_t start)
{
    for (size_t i = 0; i < spans->count; i++)
        if (spans->used[i].start == start)
            return spans->used[i].length;
    return 0;
}

struct span spans_holding(const struct spans *spans, size_t page)
{
    for (size_t i = 0; i < spans->count; i++)
        if (page - spans->used[i].start < spans->used[i].length)
            return spans->used[i];
    return (struct span){0};
}

void spans_done(struct spans *spans)
{
    free(spans->used);
    *spans = (struct spans){0};
}
