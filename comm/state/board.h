/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * board.h - what a rank shows to its peers on the node: the call it is in, and why it stopped.
 *
 * Only its owner writes it; peers read it when a wait has lasted suspiciously long. It is how a
 * call of something else is told from a slow rank, and how the first sentence about a failure
 * reaches everybody.
 */
#ifndef RONDO_COMM_STATE_BOARD_H
#define RONDO_COMM_STATE_BOARD_H

#include "base/fail.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* A call in few words; what has to agree between ranks. The first word is what the user names, but
 * for the count. */
struct call_record {
    uint8_t collective, type;
    int16_t op;
    int32_t root;
    uint64_t count;
    uint32_t fingerprint;
    uint32_t unused;
};

/*
 * What the last calls were, so that a rank which went on without waiting for anybody can still be
 * compared with: two words a call, at the place that its number says. The older half of them may be
 * overwritten while it is read, so nobody asks for it.
 */
enum { BOARD_PAST = 16, BOARD_READ = BOARD_PAST / 2 };
struct past_call {
    _Atomic uint64_t name; /* number << 32 | fingerprint */
    _Atomic uint64_t what; /* the first word of its record */
};

/* Where ranks meet that make another communicator, without those who make no calls any more. */
struct invitation {
    unsigned char tag[16]; /* of these ranks: others are not meant */
    char address[80];
};
enum { BOARD_INVITATION = sizeof(struct invitation) / sizeof(uint64_t) };

/* Three lines, by how often they change: peers look at the first one only after an alarm. */
struct board {
    _Atomic uint64_t id;     /* of the communicator: the board is in use */
    _Atomic uint32_t failed; /* a rondo_result; the fields below are written before */
    _Atomic int32_t culprit; /* the rank to blame, -1 unknown */
    _Atomic uint32_t spoils; /* the first call that its failure spoils, as `sequence` / 2 */
    _Atomic uint32_t closed; /* nonzero: the owner has closed the communicator */
    char unused[40];
    _Atomic uint32_t sequence; /* calls begun; the record below belongs to it while it is even */
    _Atomic uint32_t ended;    /* collectives ended */
    _Atomic uint64_t words[3]; /* a struct call_record, as words so that reading it is no race */
    char unused_too[32];
    _Atomic uint32_t inside; /* nonzero: the owner may be touching memory of peers (leave.h) */
    _Atomic uint32_t device_inside; /* nonzero: its device may (gpu/leave.c) */
    struct past_call past[BOARD_PAST];
    _Atomic uint32_t invites;                      /* odd while the words below change */
    _Atomic uint64_t invitation[BOARD_INVITATION]; /* a struct invitation */
    /* Of a wait that lasts (blame.h): how often the owner has looked at it, and the rank that it
     * blames, as distance << 32 | rank; 0: none. */
    _Atomic uint32_t beats;
    _Atomic uint64_t blames;
    _Atomic char sentence[FAIL_SENTENCE_MAX];
};

/* Owner: a collective call begins. */
void board_begin(struct board *board, uint32_t call, const struct call_record *record);
/* Owner: is that the call it shows? */
bool board_shows(const struct board *board, const struct call_record *record);
/* Owner: the call begins that the board shows already, once more. */
static inline void board_repeat(struct board *board, uint32_t call)
{
    atomic_store_explicit(&board->sequence, 2 * call, memory_order_release);
}
/* Owner: that call has ended well. */
static inline void board_end(struct board *board, uint32_t call)
{
    atomic_store_explicit(&board->ended, call, memory_order_release);
}
/* Owner: remember it; before board_begin() or board_repeat(). */
static inline void board_note(struct board *board, uint32_t call, const struct call_record *record)
{
    struct past_call *past = &board->past[call % BOARD_PAST];
    uint64_t what;

    memcpy(&what, record, sizeof(what));
    atomic_store_explicit(&past->what, what, memory_order_relaxed);
    /* Release, pairs with the acquire in board_past(). */
    atomic_store_explicit(&past->name, (uint64_t)call << 32 | record->fingerprint,
                          memory_order_release);
}
/* Owner: it still waits, and that is whom it blames. */
static inline void board_beat(struct board *board, uint64_t blames)
{
    uint32_t beats = atomic_load_explicit(&board->beats, memory_order_relaxed);

    atomic_store_explicit(&board->blames, blames, memory_order_relaxed);
    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&board->beats, beats + 1, memory_order_release);
}
/* Reader: one of the last BOARD_READ calls, without its count; false: it is not known (any more).
 */
bool board_past(const struct board *board, uint32_t call, struct call_record *ret_record);

/* Reader: the call that `board` shows if it is number `call`. */
bool board_read(const struct board *board, uint32_t call, struct call_record *ret_record);

/* Owner: first failure only. It spoils the call that has begun and not ended, or else the next. */
void board_fail(struct board *board, rondo_result result, int culprit, const char *sentence);
/* Reader: RONDO_OK, or the failure with its sentence
 * (printable, terminated, whatever was written there). */
rondo_result board_failure(const struct board *board, int *ret_culprit,
                           char sentence[FAIL_SENTENCE_MAX]);

/* The note by which ranks of other hosts hear of an invitation. */
struct invitation_note {
    unsigned char magic[8]; /* marks it among the notes of verbs */
    struct invitation invitation;
};
struct invitation_note board_invitation_note(const struct invitation *invitation);
/* A note has come from another host: if it is an invitation, its rank's mirror shows it, as the
 * board does on the rank's own host. False: it is something else. */
bool board_hear_invitation(struct board *mirror, const void *note, size_t bytes);
/* Owner: from one thread at a time. */
void board_invite(struct board *board, const struct invitation *invitation);
/* Reader: the last one for these ranks, with its address terminated; false: none. */
bool board_invited(const struct board *board, const unsigned char tag[16],
                   struct invitation *ret_invitation);

/* Reader: has it failed before it ended call number `call`? */
bool board_spoils(const struct board *board, uint32_t call);

/* What board_describe() writes, without the count, of what board_past() says. */
void board_describe_past(const struct call_record *record, char *text, size_t size);
/* "all_reduce of 17 float32, sum" */
void board_describe(const struct call_record *record, char *text, size_t size);

#endif
