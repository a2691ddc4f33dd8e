/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trial.h - which of several ways is the quickest: found out by trying, while calls run.
 *
 * What is faster depends on which caches the cores share, on what else fills them and on the size,
 * by factors of up to ten either way, and in a virtual machine it changes while a program runs. So
 * a call that is repeated goes through all ways now and then, and keeps to the quickest. Nothing
 * but time depends on it.
 *
 * Who takes a way is not who gains: the reader waits for the lines that the writer stored. So all
 * ranks try the same way in the same calls, by counting them, and what each measures is what the
 * way means for all. Each then keeps to what it finds best itself.
 *
 * A sender is ahead of its receiver by all the slots there are. So messages of one way count only
 * once slots are full of them, and several are timed as one: what one takes depends on whether the
 * peer has just made room.
 */
#ifndef RONDO_COMM_STATE_TRIAL_H
#define RONDO_COMM_STATE_TRIAL_H

#include <stdbool.h>

enum { TRIAL_WAYS = 4 };

/* How often ways are tried, in calls. */
struct trial_rules {
    unsigned first;          /* before the first trials */
    unsigned pause, longest; /* until the second trials; each pause is longer than the last */
    unsigned skipped;        /* of each way, before any counts */
    unsigned timed;          /* of each way, then */
    unsigned as_one;         /* of those, in one time */
};

struct trial {
    const struct trial_rules *rules;
    unsigned ways;            /* bit 1 << way: to be tried; the same on all ranks */
    unsigned way;             /* the best so far */
    unsigned now;             /* the one in use: the best, or one that is being tried */
    unsigned tried;           /* calls of it, while it is tried */
    bool trying;              /* the next call's time will count */
    unsigned pause, until;    /* calls between trials, and to the next ones */
    double sum;               /* seconds of those that are timed as one */
    double least;             /* seconds of a call in the quickest of such times */
    double times[TRIAL_WAYS]; /* seconds of a call, as last tried; 0: not yet */
};

/* Begins with `way`, or the next there is; `rules` last as long as the trial. */
void trial_init(struct trial *trial, const struct trial_rules *rules, unsigned ways, unsigned way);
/* A call went that way, and took so long; true if another way is the best from now on. */
bool trial_note(struct trial *trial, unsigned went, double seconds);

/* True if there is more than one way. */
static inline bool trial_matters(const struct trial *trial)
{
    return (trial->ways & (trial->ways - 1)) != 0;
}

/* ---- What may be in vain --------------------------------------------------------------------- */

/* Something that is left out for some calls when it was tried in vain so often. */
struct attempts {
    unsigned in_vain; /* in a row */
    unsigned backoff; /* calls to come that will not try */
};

static inline void attempts_note(struct attempts *attempts, bool in_vain)
{
    enum { MOST = 4, REST = 31 };

    attempts->in_vain = in_vain ? attempts->in_vain + 1 : 0;
    if (attempts->in_vain >= MOST)
        attempts->backoff = REST;
}

#endif
