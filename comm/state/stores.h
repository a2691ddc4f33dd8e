/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stores.h - which way to store: found out by trying, while calls run.
 *
 * Long pieces may be stored past the cache, into slots or into the user's output. What is faster
 * depends on which caches the cores share, on what else fills them and on the size, by factors of
 * up to ten either way, and in a virtual machine it changes while a program runs. So a call that is
 * repeated goes through all ways now and then, and keeps to the quickest. Nothing but time depends
 * on it.
 *
 * Who stores is not who gains: the reader waits for the lines. So all ranks try the same way in the
 * same calls, by counting them, and what each measures is what the way means for all.
 */
#ifndef RONDO_COMM_STATE_STORES_H
#define RONDO_COMM_STATE_STORES_H

#include <stdbool.h>

enum { STORES_WAYS = 4 }; /* sums of PAST_CACHE_... (plan/exec.h) */

struct stores {
    unsigned ways;  /* bit 1 << way: to be tried; the same on all ranks */
    unsigned way;   /* the best so far */
    unsigned now;   /* the one in use: the best, or one on trial */
    unsigned tried; /* calls of it, while on trial */
    double least;   /* seconds of the quicker ones */
    bool trying;
    bool is_long;              /* calls take long, so they are few */
    unsigned pause, until;     /* calls between trials, and to the next ones */
    double times[STORES_WAYS]; /* seconds of a call, as last tried; 0: not yet */
};

/* Begins with `way`, or the next there is. Of long calls fewer are spent on trials. */
void stores_open(struct stores *stores, unsigned ways, unsigned way, bool is_long);
/* A call took so long; true if another way is the best from now on. */
bool stores_note(struct stores *stores, double seconds);

static inline bool stores_matter(const struct stores *stores)
{
    return (stores->ways & (stores->ways - 1)) != 0;
}

#endif
