/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agreement.h - how ranks agree on what their flags have in common and on who has failed, while
 * some of them fail: one rank's part of it, without time, memory of others or sockets.
 *
 * Every rank shows a vote (comm/state/vote.h), which only it writes, and looks at those of others.
 * The lowest rank that nobody suspects coordinates:
 *
 *     others                              coordinator
 *     show flags and suspects  -------->  has the votes of all whom it does not suspect:
 *     accept the proposal      <--------  proposes flags, and-ed, and the failed ranks
 *     have the verdict         -------->  all of these have accepted: that is the verdict
 *                              <--------
 *
 * If it is suspected, the next rank takes over with a higher ballot. All whom that one does not
 * suspect promise to accept nothing of a lower ballot any more, and it proposes again what any of
 * them has accepted before. So two ranks that get different verdicts hold each other's for failed:
 * one is named in the verdict of the other (docs/recovery.md proves it, tests/models/agreement.pml
 * tries it). A verdict is had by whoever sees one, from the living or the dead.
 *
 * Whom to suspect is the caller's business: a suspicion may be wrong, and is never taken back.
 * Those who are heard are believed, so that all suspect the same ranks in the end. Not believed is
 * who has only lost another: the connection between these two may be all that has ended. Who hears
 * one of them asks the other, and decides nothing before it has lost that one, too, or knows that
 * both have lost each other; then it suspects the one that has lost more ranks.
 */
#ifndef RONDO_COMM_RECOVERY_AGREEMENT_H
#define RONDO_COMM_RECOVERY_AGREEMENT_H

#include "comm/state/vote.h"

enum agreement_state {
    AGREEMENT_WAITS,   /* for votes of others, or for suspicions */
    AGREEMENT_DECIDED, /* own.verdict */
    AGREEMENT_OUT,     /* the others go on without this rank */
};

struct agreement {
    int size, rank;
    bool changed; /* `own` is to be shown; the caller resets it */
    struct vote own;
    uint64_t watched[VOTE_SET]; /* because of what others have lost, or ask */
    struct vote *others;        /* [rank], as last seen; written by the caller */
};

/* The next agreement begins; the one before is over. `purpose` is a bit that all have in common. */
void agreement_begin(struct agreement *agreement, uint64_t purpose, uint64_t flags);
void agreement_suspect(struct agreement *agreement, int rank);
/* This rank cannot talk to that one, and does not know whether others can. */
void agreement_lose(struct agreement *agreement, int rank);
/* Do what can be done with the votes that are there. */
enum agreement_state agreement_step(struct agreement *agreement);
/* True if it waits for something of that rank, which therefore is to be watched. */
bool agreement_awaits(const struct agreement *agreement, int rank);
/* True if that rank is to be told, as this one wants to know whom it has lost. */
bool agreement_asks(const struct agreement *agreement, int rank);
/* True if the rank has come to this agreement, or to a later one. */
bool agreement_has_come(const struct agreement *agreement, int rank);
/* The lowest rank that is not suspected, other than this one if others suspect it; -1: none. */
int agreement_lowest(const struct agreement *agreement);
/* True if this rank coordinates. */
bool agreement_leads(const struct agreement *agreement);

#endif
