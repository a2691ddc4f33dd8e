/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.h - what a rank shows to its peers on the node: the call it is in, and why it stopped.
 *
 * Only its owner writes it; peers read it when a wait has lasted suspiciously long. It is how a
 * call of something else is told from a slow rank, and how the first sentence about a failure
 * reaches everybody.
 */
#ifndef RONDO_COMM_STATE_STATUS_H
#define RONDO_COMM_STATE_STATUS_H

#include "base/fail.h"
#include "comm/recorder/call.h"
#include "comm/state/vote.h"
#include "transport/link/call_header.h"

/* The place where some ranks meet to make another communicator, without those who make no calls any
 * more. */
struct invitation {
    unsigned char tag[16]; /* of these ranks: others are not meant */
    char address[80];
};
enum { STATUS_INVITATION = sizeof(struct invitation) / sizeof(uint64_t) };

enum status_closed {
    STATUS_OPEN,
    STATUS_CLOSING, /* the owner makes no more calls */
    STATUS_CLOSED,  /* nor does it touch anything of peers */
    /* On mirrors: */
    STATUS_PARTED, /* it has closed its end, or nobody listened there: see network_owner.left */
    STATUS_LOST    /* it cannot be heard any more, as one that ended without a word */
};

/* Three lines, by how often they change: peers look at the first one only after an alarm. */
struct status {
    _Atomic uint64_t id;     /* of the communicator: the status page is in use */
    _Atomic uint32_t failed; /* a rondo_result; the fields below are written before */
    _Atomic int32_t culprit; /* the rank to blame, -1 unknown */
    _Atomic uint32_t spoils; /* the first call that its failure spoils, as `sequence` / 2 */
    _Atomic uint32_t closed; /* enum status_closed */
    char unused[40];
    struct call_header_page call; /* begun last: its words are a struct call_record */
    char unused_too[32];
    _Atomic uint32_t inside; /* nonzero: the owner may be touching memory of peers (leave.h) */
    _Atomic uint32_t device_inside;                 /* nonzero: its device may (gpu/leave.c) */
    _Atomic uint32_t invites;                       /* odd while the words below change */
    _Atomic uint64_t invitation[STATUS_INVITATION]; /* a struct invitation */
    /* The wait of the owner, if it lasts (blame.h): `heartbeats` counts the owner's looks at it,
     * `blames` is the rank to blame as distance << 32 | rank, 0: none. */
    _Atomic uint32_t heartbeats;
    _Atomic uint64_t blames;
    struct vote_page vote; /* in agreements */
    _Atomic char sentence[FAIL_SENTENCE_MAX];
};

/* Owner: call number `call` has ended well. */
static inline void status_end(struct status *status, uint32_t call)
{
    atomic_store_explicit(&status->call.ended, call, memory_order_release);
}
/* Owner: this rank still waits, and blames that rank (see `blames`). Calls and streams are watched
 * by different threads: of two heartbeats at a time one may be lost, and the other is as good. */
static inline void status_heartbeat(struct status *status, uint64_t blames)
{
    uint32_t heartbeats = atomic_load_explicit(&status->heartbeats, memory_order_relaxed);

    atomic_store_explicit(&status->blames, blames, memory_order_relaxed);
    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&status->heartbeats, heartbeats + 1, memory_order_release);
}
/* Reader: one of the last CALL_HEADER_READ calls, without its count; false: nobody knows it now. */
bool status_past(const struct status *status, uint32_t call, struct call_record *ret_record);

/* Reader: the call that `status page` shows if it is number `call`. */
bool status_read(const struct status *status, uint32_t call, struct call_record *ret_record);

/* Owner: first failure only. It spoils the call that has begun and not ended, or else the next. */
void status_fail(struct status *status, rondo_result result, int culprit, const char *sentence);
/* Reader: RONDO_OK, or the failure with its sentence
 * (printable, terminated, whatever was written there). */
rondo_result status_failure(const struct status *status, int *ret_culprit,
                            char sentence[FAIL_SENTENCE_MAX]);

/* The note by which ranks of other hosts hear of an invitation. */
struct invitation_note {
    unsigned char magic[8]; /* marks it among the notes of verbs */
    struct invitation invitation;
};
struct invitation_note status_invitation_note(const struct invitation *invitation);
/* A note has come from another host: if it is an invitation, its rank's mirror shows it, as the
 * status page does on the rank's own host. False: it is something else. */
bool status_hear_invitation(struct status *mirror, const void *note, size_t bytes);
/* Owner: from one thread at a time. */
void status_invite(struct status *status, const struct invitation *invitation);
/* Reader: the last one for these ranks, with its address terminated; false: none. */
bool status_invited(const struct status *status, const unsigned char tag[16],
                    struct invitation *ret_invitation);

/* Reader: has the owner failed before it ended call number `call`? */
bool status_spoils(const struct status *status, uint32_t call);

#endif
