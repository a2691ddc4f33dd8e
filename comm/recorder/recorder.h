/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder.h - the flight recorder: what a rank writes down of its calls, for others to read.
 *
 * The record lies in a file that this rank has mapped (page.h), in a folder of the user's. It costs
 * a call two stores into one cache line, and no system call: what does not change between calls
 * that are the same is there already. Once in RECORDER_TIMED calls, in the same ones on all ranks,
 * the clock is read, which tells who came late (late.h); long calls are timed all. A wait that
 * lasts is written down about once a millisecond, when the rank looks after it anyway.
 *
 * The file is removed when the communicator is closed. It stays after a crash, until `rondo ps
 * --clean`, or until a later job finds that it is old.
 */
#ifndef RONDO_COMM_RECORDER_RECORDER_H
#define RONDO_COMM_RECORDER_RECORDER_H

#include "comm/recorder/page.h"

#include <string.h>

enum { RECORDER_TIMED = 64, RECORDER_LONG = 32 << 10 /* bytes of a call that is always timed */ };

/* Calls of one kind have the same words in their records. */
struct recorder_kind {
    struct call_record record; /* what the ranks were asked for */
    const char *algorithm;
    bool is_long; /* all of them are timed */
};

struct recorder {
    struct recorder_page *page;
    uint32_t number; /* of the last record */
    /* Of which kind the words of each record are: calls of a few kinds in turns keep theirs. */
    struct recorder_words {
        const struct recorder_kind *kind;
        uint32_t fingerprint;
    } words[RECORDER_CALLS];
    uint32_t timed; /* arrivals so far */
    char name[64];  /* of the file in the folder */
};

/* This rank writes. */
struct recorder_owner {
    int rank, size;
    const unsigned char *host_id; /* 16 bytes */
};

/* NULL: it is off (RONDO_RECORDER), or there is no folder for it, as the log says. All functions
 * below but the inline ones accept NULL. */
struct recorder *recorder_open(const struct recorder_owner *owner);
void recorder_close(struct recorder *recorder);
/* The communicator has got its identity; and it is complete, with so many calls that no user
 * made. */
void recorder_name(struct recorder *recorder, uint64_t comm);
void recorder_complete(struct recorder *recorder, uint32_t internal);
void recorder_wait(struct recorder *recorder, int which, const struct recorder_waiting *waiting);
/* The rank that waits looks into all records, which may take seconds on a busy machine, and twice
 * where it gives up: it goes on waiting in the eyes of others until it is no longer held. */
void recorder_hold_wait(struct recorder *recorder, int which, bool held);
/* The first failure of the communicator. */
void recorder_fail(struct recorder *recorder, int result, int culprit, const char *sentence);

/* The next record gets the words of its kind. */
void recorder_note_kind(struct recorder *recorder, const struct recorder_kind *kind);
/* The clock is read for a call that begins. */
void recorder_arrive(struct recorder *recorder, uint32_t call);

/* A call begins; `call`: its number, 0 for send and receive. Its address and its fingerprint tell a
 * kind from others: a record that was of the same one has its words already. Returns the mark of
 * the call's record. */
static inline uint64_t recorder_begin(struct recorder *recorder, uint32_t call,
                                      const struct recorder_kind *kind)
{
    const struct recorder_words *words = &recorder->words[(recorder->number + 1) % RECORDER_CALLS];
    uint32_t number;
    uint64_t mark;

    if (words->kind != kind || words->fingerprint != kind->record.fingerprint)
        recorder_note_kind(recorder, kind);
    number = ++recorder->number % RECORDER_NUMBERS;
    mark = (uint64_t)call << 32 | (uint64_t)number * RECORDER_STATES | RECORDER_BEGUN;
    /* Release, pairs with the acquire of readers: the words are there. */
    atomic_store_explicit(&recorder->page->calls[number % RECORDER_CALLS].mark, mark,
                          memory_order_release);
    if ((kind->is_long || call % RECORDER_TIMED == 0) && call)
        recorder_arrive(recorder, call);
    return mark;
}

/* The call of the record with that mark has ended, or begins once more in another way. It may have
 * been overwritten in a long call group. */
static inline void recorder_end(struct recorder *recorder, uint64_t mark, enum recorder_state state)
{
    uint32_t number = (uint32_t)mark / RECORDER_STATES;

    if ((recorder->number - number) % RECORDER_NUMBERS < RECORDER_CALLS)
        atomic_store_explicit(&recorder->page->calls[number % RECORDER_CALLS].mark,
                              mark - mark % RECORDER_STATES + state, memory_order_release);
}

#endif
