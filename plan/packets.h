/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packets.h - a short message as cache lines that each carry their own flag (link/link.h).
 *
 * Stores of one line stay together, and lines are published in order; the reader asks for all of
 * them before it needs the first, so their journeys between the cores overlap.
 */
#ifndef RONDO_PLAN_PACKETS_H
#define RONDO_PLAN_PACKETS_H

#include "transport/link/link.h"

#include <string.h>

/* The line with the flag of message number `before` + 1. */
static inline struct link_packet *packets_head(const struct link_rooms *rooms,
                                               struct link_shorts *shorts, uint32_t before,
                                               unsigned lines)
{
    return lines == 1 ? &shorts->inlined[before & (rooms->inlined - 1)]
                      : shorts->packets[before & (rooms->packed - 1)];
}

static inline void packets_write(const struct link_rooms *rooms, const struct link_out *out,
                                 unsigned lines, uint64_t flag)
{
    struct link_packet *packets = packets_head(rooms, out->shorts, out->sent, lines);

    for (unsigned i = 0; i < lines; i++) {
        memcpy(packets[i].payload, out->packed + i * LINK_INLINE, LINK_INLINE);
        /* Release, pairs with the acquire in packets_read(). */
        atomic_store_explicit(&packets[i].flag, flag, memory_order_release);
    }
}

static inline bool packets_read(const struct link_rooms *rooms, const struct link_in *in,
                                unsigned lines, uint64_t flag)
{
    const struct link_packet *packets = packets_head(rooms, in->shorts, in->received, lines);
    uint64_t missing = 0;

    for (unsigned i = 1; i < lines; i++)
        missing |= atomic_load_explicit(&packets[i].flag, memory_order_acquire) ^ flag;
    if (missing)
        return false;
    for (unsigned i = 0; i < lines; i++)
        memcpy(in->packed + i * LINK_INLINE, packets[i].payload, LINK_INLINE);
    return true;
}

/* Call `sweep` for every line of a link that may have a flag. */
static inline void packets_sweep(const struct link_rooms *rooms, const struct link_out *out,
                                 void (*sweep)(const struct link_out *, struct link_packet *))
{
    for (uint32_t i = 0; i < rooms->inlined; i++)
        sweep(out, &out->shorts->inlined[i]);
    for (uint32_t i = 0; i < rooms->packed * LINK_PACKETS; i++)
        sweep(out, &out->shorts->packets[i / LINK_PACKETS][i % LINK_PACKETS]);
}

/* step_loop.h asks for these macros; they serve whoever goes through a plan on the host. */
#define step_write_packets(x, out, lines, flag) packets_write(&(x)->world->rooms, out, lines, flag)
#define step_read_packets(x, in, lines, flag)   packets_read(&(x)->world->rooms, in, lines, flag)
#define step_short_head(x, shorts, before, lines) \
    packets_head(&(x)->world->rooms, shorts, before, lines)
#define step_short_room(x, lines) \
    ((lines) == 1 ? (x)->world->rooms.inlined : (x)->world->rooms.packed)
/* The flags of a link are swept by a function that step_loop.h has. */
#define step_sweep_shorts(x, out) packets_sweep(&(x)->world->rooms, out, step_sweep_flag)
#define step_at(x, program)       (&(x)->plan->steps[(program)->at])
#define step_next(x, program)     ((program)->at++)

#endif
