/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cell.h - what announces a message, or that some were given back: a cell of two cache lines,
 * written into a ring of cells that the reader polls.
 *
 *     | check | flag | number, bytes | channel, rails | call header | given back | short payload |
 *
 * An adapter may place the bytes of a write, and of several, in any order, so no byte of a cell can
 * be the last; and nothing else is written twice, as the older one could come later. A
 * cell is whole when its check fits the rest of it and the number of the cell that is due: a hash
 * of 64 bits, as good as certain. So a short message needs one write, no completion at the reader,
 * and holds under relaxed ordering and adaptive routing.
 *
 * A cell of a message whose payload lies in the slot says on which rails it travelled: on each of
 * them an immediate follows the payload, and completes only when all before it is in place.
 */
#ifndef RONDO_TRANSPORT_VERBS_CELL_H
#define RONDO_TRANSPORT_VERBS_CELL_H

#include "transport/link/connection.h"

#include <stdatomic.h>
#include <stddef.h>

enum { VERBS_CELL = 128, VERBS_CELL_HEAD = 64 };

struct verbs_cell {
    uint64_t check;
    uint64_t flag;   /* of the slot */
    uint32_t number; /* of the cell, from 0; wraps */
    uint32_t bytes;  /* of payload */
    uint16_t channel;
    uint8_t inlined;
    uint8_t rails; /* bits: where immediates follow payload */
    char call_header[sizeof(struct call_header)];
    uint32_t returned; /* messages of the other direction of the channel that were given back */
    uint16_t credit;   /* 1: there is no message */
    uint16_t device;   /* 1: payload lies in the ring of the device */
    char payload[LINK_INLINE];
    char rest[VERBS_CELL - VERBS_CELL_HEAD - LINK_INLINE];
};
_Static_assert(sizeof(struct verbs_cell) == VERBS_CELL, "a cell is what travels");
_Static_assert(offsetof(struct verbs_cell, payload) == VERBS_CELL_HEAD, "payload follows the head");

/* Bytes of the cell that travel. */
static inline uint32_t verbs_cell_bytes(const struct verbs_cell *cell)
{
    return VERBS_CELL_HEAD + (cell->inlined ? (cell->bytes + 7) / 8 * 8 : 0);
}

/* Sets the check; all else is filled in, `number` as the 64 bits that do not wrap. */
void verbs_cell_seal(struct verbs_cell *cell, uint64_t number);
/* True if the cell of this number may be there. Most looks end here. */
static inline bool verbs_cell_shows(const struct verbs_cell *at, uint64_t number)
{
    /* Relaxed: verbs_cell_read() looks again. */
    return atomic_load_explicit((const _Atomic(uint32_t) *)&at->number, memory_order_relaxed) ==
           (uint32_t)number;
}
/* Copy the cell of this number from `at`, where it is being written, but for payload that it
 * hasn't. False: it is not whole yet, and `ret_cell` means nothing. */
bool verbs_cell_read(const struct verbs_cell *at, uint64_t number, struct verbs_cell *ret_cell);

#endif
