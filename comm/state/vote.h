/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vote.h - what a rank shows of an agreement (comm/recovery/agreement.h): one record that only its
 * owner writes.
 *
 * Ranks of the same host read it on the status page, also when its owner is dead. To ranks of other
 * hosts it travels in notes, whose order is kept, and is read on the mirror. Sets of ranks are
 * bits, so a vote has the same length whatever happens; who reads one gets all of it or nothing.
 */
#ifndef RONDO_COMM_STATE_VOTE_H
#define RONDO_COMM_STATE_VOTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Communicators of more ranks have no agreements. */
enum { VOTE_RANKS = 2048, VOTE_SET = VOTE_RANKS / 64 };

/* The outcome of an agreement, or one that is proposed. */
struct verdict {
    uint64_t flags; /* of the ranks that are left, and-ed */
    uint64_t
        purposes; /* theirs, or-ed: more than one bit means that they called different things */
    uint64_t failed[VOTE_SET];
};

struct vote {
    uint64_t number;  /* of the agreement that the owner is in, or was in last; 0: of none yet */
    uint64_t purpose; /* one bit: which function called */
    uint64_t flags;
    uint64_t promised; /* no ballot below this one is accepted any more */
    uint64_t accepted; /* the ballot of `proposal`; 0: none */
    struct verdict proposal;
    uint64_t decided; /* number of the last agreement of which the owner knows the verdict */
    struct verdict verdict;
    uint64_t asks; /* 1 + the rank that those who are told are to look at; 0: none */
    uint64_t suspects[VOTE_SET];
    uint64_t lost[VOTE_SET]; /* suspects of whom the owner knows only that it cannot talk to them */
};
enum { VOTE_WORDS = sizeof(struct vote) / sizeof(uint64_t) };

struct vote_page {
    _Atomic uint64_t changes; /* odd while the words below change */
    _Atomic uint64_t words[VOTE_WORDS];
};

/* Owner: from one thread at a time. */
void vote_show(struct vote_page *page, const struct vote *vote);
/* Reader: false if the page changes at this moment, or has not since `*seen` (0: never looked),
 * which is set to what was read. */
bool vote_read(const struct vote_page *page, uint64_t *seen, struct vote *ret_vote);

/* ---- Notes to other hosts ------------------------------------------------------------------- */

enum { VOTE_HEAD = 11, VOTE_SETS = 4, VOTE_PART = 4 };

/* A vote with a part of its sets, so many words of each from `at` on. Those of a large communicator
 * take several notes; the last one makes them a vote. */
struct vote_note {
    unsigned char magic[8]; /* marks it among other notes */
    uint32_t at, words;     /* of the sets; `words` in all */
    uint64_t head[VOTE_HEAD];
    uint64_t sets[VOTE_SETS][VOTE_PART];
};

/* Returns how many notes the votes of a communicator of that size take. */
int vote_notes(int size);
struct vote_note vote_note(const struct vote *vote, int size, int index);
/* A note has come from another host: when it completes a vote, the mirror shows it. False: it is
 * something else. From one thread at a time. */
bool vote_hear(struct vote_page *mirror, int size, const void *note, size_t bytes);

/* ---- Sets of ranks --------------------------------------------------------------------------- */

static inline bool set_has(const uint64_t set[VOTE_SET], int rank)
{
    return set[rank / 64] >> (rank % 64) & 1;
}

static inline void set_add(uint64_t set[VOTE_SET], int rank)
{
    set[rank / 64] |= (uint64_t)1 << (rank % 64);
}

static inline void set_remove(uint64_t set[VOTE_SET], int rank)
{
    set[rank / 64] &= ~((uint64_t)1 << (rank % 64));
}

static inline void set_leave(uint64_t set[VOTE_SET], const uint64_t others[VOTE_SET])
{
    for (int i = 0; i < VOTE_SET; i++)
        set[i] &= ~others[i];
}

/* Adds `more`; true if any of it is new. */
static inline bool set_join(uint64_t set[VOTE_SET], const uint64_t more[VOTE_SET])
{
    uint64_t fresh = 0;

    for (int i = 0; i < VOTE_SET; i++) {
        fresh |= more[i] & ~set[i];
        set[i] |= more[i];
    }
    return fresh;
}

#endif
