/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - one direction of one channel between two ranks: a ring of slots in memory, whatever the
 * transport.
 *
 *     writer                        slots (in the reader's memory)                          reader
 *     fill ->  [flag|...payload...][flag|...payload...][flag|...payload...]  <- take
 *              sent: messages published         consumed: slots given back (the reader's counter)
 *
 * Message number s (from 1) lives in slot (s - 1) % slots. It is published by storing its flag,
 * number and the call's fingerprint in one 64-bit word, after its payload; the reader polls that
 * word. Both sides know every length from the plan, so nothing that a peer writes is ever used as a
 * length or an index. A message has one of four forms, by the length that both know:
 *
 *     inlined  <= LINK_INLINE bytes: the payload shares the flag's cache line
 *     LL lines  <= LINK_LINES lines, each with a flag of its own: all lines travel at once, where
 *              payload behind a flag would travel only after the flag has arrived
 *     parted   <= LINK_PART bytes: the payload is a part of a slot, the flag a line elsewhere
 *     plain    the payload lies behind the flag's line
 *
 * In shared memory the first two live in rings of their own, struct link_ll, by the same numbers:
 * there may be more of them under way, and their lines lie side by side. These lines hold nothing
 * else, ever, so that no payload can look like a flag. Both sides have a message in LL lines in one
 * piece in memory of their own, `packed`. The flag of a parted message is in a line of an inlined
 * one, and its payload in slot (s - 1) % slots as well, but each time round in another part of it.
 * So parts times slots may be under way, unless a plain message is among them, whose slot may be
 * theirs (tests/models/parts.pml). Where there are no LL lines they are plain.
 *
 * Numbers wrap, and while messages are of one form, flags of the others grow old: after 2^32
 * messages an old flag would have the number of a new one. So a writer clears the flags of what has
 * been consumed, in all rings of a link, once in LINK_SWEEP messages (tests/models/ring.pml). A
 * flag of 0 is that of a place which was never used, or was swept; no message has it, because
 * fingerprints are never 0.
 *
 * On shared memory that is all. A transport that moves bytes gives both sides local rings of the
 * same layout: it sends what step_push() announces, and stores flags and counters when bytes arrive
 * (struct connection).
 */
#ifndef RONDO_TRANSPORT_LINK_LINK_H
#define RONDO_TRANSPORT_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kernels for GPUs, which are C++, have atomic loads and stores of plain words. */
#ifdef __cplusplus
#define LINK_ATOMIC(type) type
#else
#include <stdalign.h>
#include <stdatomic.h>
#define LINK_ATOMIC(type) _Atomic type
#endif

enum {
    LINK_LINE = 64,
    LINK_INLINE = 56,
    LINK_LINES = 10,
    LINK_PACKED = LINK_LINES * LINK_INLINE, /* bytes */
    LINK_PART = 8 << 10,                    /* bytes */
    /* Entries that there are for messages of the short forms; struct link_depths says how many are
     * used. */
    LINK_INLINED_MOST = 256,
    LINK_PACKED_MOST = 64,
};

/* A power of 2, so that it divides 2^32; twice as many and what is under way stay below that. */
#define LINK_SWEEP (UINT32_C(1) << 30)

struct link_line {
    /* Low half: message number, high half: fingerprint; 0: never used, or swept */
    LINK_ATOMIC(uint64_t) flag;
    char payload[LINK_INLINE];
};

struct link_slot {
    struct link_line head;
    char payload[]; /* slot_bytes of it */
};

/* Message number s has entry (s - 1) % room of one of the two. The rooms that a communicator uses
 * are the same at both ends; what lies beyond them is never touched. */
struct link_ll {
    struct link_line inlined[LINK_INLINED_MOST];
    struct link_line packed[LINK_PACKED_MOST][LINK_LINES];
};

struct link_depths {
    uint32_t inlined, packed; /* powers of 2; messages of either short form under way */
};

/* Written by the reader only, in the reader's memory beside the slots. */
struct link_credit {
    alignas(LINK_LINE) LINK_ATOMIC(uint32_t) consumed;
};

struct connection; /* what a transport that moves bytes keeps; NULL on shared memory */

struct link_out {
    char *slots;
    struct link_credit *credit;
    struct connection *connection;
    size_t stride; /* bytes from slot to slot */
    char *fill;    /* where the next piece of the open slot goes; NULL: no slot is open */
    /* The payload of the open slot, in memory of the caller; NULL: it is in the slot */
    const char *zcopy;
    struct link_ll *ll; /* NULL: this link has slots only */
    char *packed;       /* LINK_PACKED bytes of this rank, if it has LL lines */
    uint32_t slot_count;
    uint32_t sent;     /* messages published */
    uint32_t plain;    /* the number of the last plain one, if it is not long ago */
    uint32_t consumed; /* what credit->consumed was when last looked at */
    uint32_t index;    /* slot of the next message */
    uint32_t lap;      /* times round the ring */
};

struct link_in {
    char *slots;
    struct link_credit *credit;
    struct connection *connection;
    size_t stride;
    char *take; /* where the next piece of the open message is; NULL: none is open */
    struct link_ll *ll;
    char *packed;
    uint32_t slot_count;
    uint32_t received; /* messages taken and given back */
    uint32_t index;
    uint32_t lap;
};

/* The inline payload of a message that says where the sender's buffers are. */
struct link_addresses {
    /* Offsets in the sender's shared heap, or plain addresses; enum address_kind tells. */
    uint64_t input, output;
    uint32_t input_kind, output_kind;
};

/* The fingerprint of a call as flags have it: never 0. */
static inline uint32_t link_fingerprint(uint32_t hash)
{
    return hash ? hash : 1;
}

static inline size_t link_stride(size_t slot_bytes)
{
    return sizeof(struct link_slot) + (slot_bytes + LINK_LINE - 1) / LINK_LINE * LINK_LINE;
}

/* Bytes of one ring: the credit line and its slots; without LL lines. */
static inline size_t link_ring_bytes(int slots, size_t slot_bytes)
{
    return sizeof(struct link_credit) + (size_t)slots * link_stride(slot_bytes);
}

#endif
