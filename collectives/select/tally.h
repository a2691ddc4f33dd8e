/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.h - counts what one rank does, while its plan is being written (struct plan_reader).
 *
 * Messages of one rank form *rounds*, which follow each other:
 *
 *     send to 1, to 2, to 3 | await 1, 2, 3     one round: no send waits for what comes in it
 *     send to 1 | await 3 || send to 1 | ...    a send behind a wait begins the next round
 *     send to 1 || send to 1                    and so does a peer that comes up again
 *
 * Messages of a round go to different peers and overlap: each one but the first costs a quarter.
 */
#ifndef RONDO_COLLECTIVES_SELECT_TALLY_H
#define RONDO_COLLECTIVES_SELECT_TALLY_H

#include "plan/plan.h"

enum reach { NEAR, FAR, REACHES }; /* within a group; from group to group */

struct round {
    int sends[REACHES], waits[REACHES];
    int first_sent, first_awaited; /* peers; -1: none */
};

struct tally {
    struct plan_reader reader;
    const struct grouping *groups; /* NULL: all is near */
    struct round round;
    double steps[REACHES]; /* of rounds that are over: messages one after another */
    bool sends[REACHES], takes[REACHES];
    bool left; /* the message being filled has been sent: what follows belongs to the next one */
    /* Lengths in atoms: of a message, of the longest one, and of what cost.h counts. */
    double filled, longest[REACHES];
    double copied[PLAN_PROGRAMS_MAX], reduced[PLAN_PROGRAMS_MAX];
    double copied_far, reduced_far; /* the part that comes from other groups, or goes there */
    double sent, taken, sent_far, taken_far;
};

/* Begin; &tally->reader then reads one plan. */
void tally_open(struct tally *tally, const struct grouping *groups);
/* The plan is over: so is the last round. */
void tally_close(struct tally *tally);

/* Steps of a round in which a rank sends, or takes, this many messages. */
double tally_round(double messages);

#endif
