/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stores.h - which way to store: found out by trying, while calls run.
 *
 * Long pieces may be stored past the cache, into slots or into the user's output. What is faster
 * depends on which caches the cores share, on what else fills them and on the size, by factors of
 * up to ten either way, and in a virtual machine it changes while a program runs. So now and then a
 * call that is repeated goes another way; the way stays if it was faster. It is a matter of
 * this rank alone: nothing but time depends on it. Who loses clearly is tried less and less often,
 * until the times change. Ranks try at different times: two that change ways at once may only swap
 * them, and learn nothing.
 */
#ifndef RONDO_COMM_STORES_H
#define RONDO_COMM_STORES_H

#include <stdbool.h>

enum { STORES_WAYS = 4 }; /* sums of PAST_CACHE_... (plan/exec.h) */

struct stores {
    unsigned ways; /* bit 1 << way: it makes a difference here; one bit at least */
    unsigned way;  /* the best so far */
    unsigned now;  /* the one in use: the best, or one on trial */
    unsigned tried;
    unsigned pause, until; /* calls between trials, and to the next one */
    unsigned stagger;      /* calls by which this rank tries later than rank 0 */
    double usual;          /* seconds of a call the best way */
    double settled;        /* what `usual` was when trials were last spaced */
    double least;          /* seconds of the quickest call of the trial */
};

/* `ways` as above; begins with `way`, or the next there is. */
void stores_open(struct stores *stores, unsigned ways, unsigned way, int rank);
/* A call took so long; true if another way is the best from now on. */
bool stores_note(struct stores *stores, double seconds);

static inline bool stores_matter(const struct stores *stores)
{
    return (stores->ways & (stores->ways - 1)) != 0;
}

#endif
