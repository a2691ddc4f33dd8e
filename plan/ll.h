/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ll.h - an LL message, cut into cache lines that each carry their own flag (link/link.h).
 *
 * Stores of one line stay together, and lines are published in order; the reader asks for all of
 * them before it needs the first, so their journeys between the cores overlap.
 */
#ifndef RONDO_PLAN_PACKED_H
#define RONDO_PLAN_PACKED_H

#include "transport/link/link.h"

#include <string.h>

/* The line with the flag of message number `before` + 1. */
static inline struct link_line *ll_head(const struct link_depths *ll_depths, struct link_ll *ll,
                                        uint32_t before, unsigned lines)
{
    return lines == 1 ? &ll->inlined[before & (ll_depths->inlined - 1)]
                      : ll->packed[before & (ll_depths->packed - 1)];
}

static inline void ll_write(const struct link_depths *ll_depths, const struct link_out *out,
                            unsigned lines, uint64_t flag)
{
    struct link_line *packed = ll_head(ll_depths, out->ll, out->sent, lines);

    for (unsigned i = 0; i < lines; i++) {
        memcpy(packed[i].payload, out->packed + i * LINK_INLINE, LINK_INLINE);
        /* Release, pairs with the acquire in ll_read(). */
        atomic_store_explicit(&packed[i].flag, flag, memory_order_release);
    }
}

static inline bool ll_read(const struct link_depths *ll_depths, const struct link_in *in,
                           unsigned lines, uint64_t flag)
{
    const struct link_line *packed = ll_head(ll_depths, in->ll, in->received, lines);
    uint64_t missing = 0;

    for (unsigned i = 1; i < lines; i++)
        missing |= atomic_load_explicit(&packed[i].flag, memory_order_acquire) ^ flag;
    if (missing)
        return false;
    for (unsigned i = 0; i < lines; i++)
        memcpy(in->packed + i * LINK_INLINE, packed[i].payload, LINK_INLINE);
    return true;
}

/*
 * Asks for the line of a later message. The reader's core has had it since it read it a lap ago,
 * and a store that waits for its line holds back all stores behind it; so a stream of messages
 * would go at the pace of these journeys. Messages of more lines gain nothing.
 */
static inline void ll_fetch_ahead(const struct link_depths *ll_depths, const struct link_out *out)
{
    enum { AHEAD = 4 }; /* far enough from the line that the reader polls; less than a lap */
    const struct link_line *line = ll_head(ll_depths, out->ll, out->sent + AHEAD, 1);

#if defined(__x86_64__)
    __asm__ __volatile__("prefetchw %0" : : "m"(*line)); /* does nothing where it is not known */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Call `sweep` for every line of a link that may have a flag. */
static inline void ll_sweep(const struct link_depths *ll_depths, const struct link_out *out,
                            void (*sweep)(const struct link_out *, struct link_line *))
{
    for (uint32_t i = 0; i < ll_depths->inlined; i++)
        sweep(out, &out->ll->inlined[i]);
    for (uint32_t i = 0; i < ll_depths->packed * LINK_LINES; i++)
        sweep(out, &out->ll->packed[i / LINK_LINES][i % LINK_LINES]);
}

/* step_slots.h asks for these macros; they serve whoever goes through a plan on the host. */
#define step_write_ll(x, out, lines, flag) ll_write(&(x)->world->ll_depths, out, lines, flag)
#define step_read_ll(x, in, lines, flag)   ll_read(&(x)->world->ll_depths, in, lines, flag)
#define step_ll_head(x, ll, before, lines) ll_head(&(x)->world->ll_depths, ll, before, lines)
#define step_fetch_ahead(x, out) \
    ((out)->ll && (x)->shape.lines == 1 ? ll_fetch_ahead(&(x)->world->ll_depths, out) : (void)0)
#define step_ll_depth(x, lines) \
    ((lines) == 1 ? (x)->world->ll_depths.inlined : (x)->world->ll_depths.packed)
/* The flags of a link are swept by a function that step_slots.h has. */
#define step_sweep_ll(x, out) ll_sweep(&(x)->world->ll_depths, out, step_sweep_flag)
#define step_at(x, program)   (&(x)->plan->steps[(program)->at])
#define step_next(x, program) ((program)->at++)

#endif
