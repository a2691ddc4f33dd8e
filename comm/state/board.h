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
 * The names of the last BOARD_PAST calls, to compare with a rank that went on without waiting for
 * anybody: two words per call, at index call % BOARD_PAST. Readers ask for the last BOARD_READ
 * only, as the older half may be overwritten while it is read.
 */
enum { BOARD_PAST = 16, BOARD_READ = BOARD_PAST / 2 };
struct past_call {
    _Atomic uint64_t name; /* number << 32 | fingerprint */
    _Atomic uint64_t what; /* the first word of its record */
};

/* The place where some ranks meet to make another communicator, without those who make no calls any
 * more. */
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
    /* The wait of the owner, if it lasts (blame.h): `beats` counts the owner's looks at it,
     * `blames` is the rank to blame as distance << 32 | rank, 0: none. */
    _Atomic uint32_t beats;
    _Atomic uint64_t blames;
    _Atomic char sentence[FAIL_SENTENCE_MAX];
};

/* Owner: a collective call begins. */
void board_begin(struct board *board, uint32_t call, const struct call_record *record);
/* Owner: does the board show this call? */
bool board_shows(const struct board *board, const struct call_record *record);
/* Owner: the call that the board already shows begins once more. */
static inline void board_repeat(struct board *board, uint32_t call)
{
    atomic_store_explicit(&board->sequence, 2 * call, memory_order_release);
}
/* Owner: call number `call` has ended well. */
static inline void board_end(struct board *board, uint32_t call)
{
    atomic_store_explicit(&board->ended, call, memory_order_release);
}
/* Owner: note the call among the past ones; before board_begin() or board_repeat(). */
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
/* Owner: this rank still waits, and blames that rank (see `blames`). Calls and streams are watched
 * by different threads: of two beats at a time one may be lost, and the other is as good. */
static inline void board_beat(struct board *board, uint64_t blames)
{
    uint32_t beats = atomic_load_explicit(&board->beats, memory_order_relaxed);

    atomic_store_explicit(&board->blames, blames, memory_order_relaxed);
    /* Release, pairs with the acquire of readers. */
    atomic_store_explicit(&board->beats, beats + 1, memory_order_release);
}
/* Reader: one of the last BOARD_READ calls, without its count; false: it is not known any more. */
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

/* Reader: has the owner failed before it ended call number `call`? */
bool board_spoils(const struct board *board, uint32_t call);

/* Writes a record that board_past() returned as board_describe() does, but without the count. */
void board_describe_past(const struct call_record *record, char *text, size_t size);
/* Writes a call in words: "all_reduce of 17 float32, sum". */
void board_describe(const struct call_record *record, char *text, size_t size);

#endif
