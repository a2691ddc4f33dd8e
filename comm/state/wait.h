/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - how to wait: spin while a peer on another core is likely to answer soon, then let others
 * run, then doze. Time is only looked at now and then; the caller is told when it is worth to check
 * whether waiting makes sense.
 */
#ifndef RONDO_COMM_STATE_WAIT_H
#define RONDO_COMM_STATE_WAIT_H

#include "base/relax.h"

#include <stdbool.h>

/* A policy says how the waits of a communicator spin; tuning.c chooses it. */
struct wait_policy {
    int ranks_per_core; /* ranks per core, 1 to 100: with many, who waits long looks less often */
    int polls;          /* times that flags alone are looked at */
    int spins;          /* pauses before a wait yields */
    int network_spins;  /* looks at the networks before a wait sleeps */
    double doze_part;   /* a doze may last so much of the wait that it is part of */
};

struct waiter {
    const struct wait_policy *policy;
    int rounds; /* since something moved */
    int yields;
    double now;   /* when time was last looked at */
    double since; /* when the present wait began, 0: not yet known */
    double checked;
    long switches; /* of the thread when it looked last, -1: not known */
};

static inline void waiter_init(struct waiter *waiter, const struct wait_policy *policy)
{
    *waiter = (struct waiter){.policy = policy};
}

static inline void waiter_reset(struct waiter *waiter)
{
    waiter->rounds = 0;
    waiter->since = 0;
}

/*
 * True if the wait is so short that only the flags of its messages should be polled: on one host
 * most come within a cache line's journey between two cores, of which a pause, and going through
 * all of a call once more, take a fifth. Where ranks share cores, a peer may need this one to get
 * on.
 */
static inline bool waiter_polls(struct waiter *waiter)
{
    if (waiter->rounds >= waiter->policy->polls)
        return false;
    waiter->rounds++;
    return true;
}

/* True if the wait for a network is so short that it should look again, not sleep. */
static inline bool waiter_looks_again(struct waiter *waiter)
{
    if (waiter->rounds >= waiter->policy->network_spins)
        return false;
    waiter->rounds++;
    return true;
}

/* One pause. True about every millisecond of waiting: check on the peers; `now` is fresh. */
bool waiter_pause_slow(struct waiter *waiter);
/* Seconds that a wait for a network should sleep at a time; `woken`: all that it waits for wakes
 * it. */
double waiter_sleep(const struct waiter *waiter, bool woken);
/* Does what waiter_pause_slow() does after a sleep, for a caller that slept otherwise. */
bool waiter_look(struct waiter *waiter);

static inline bool waiter_pause(struct waiter *waiter)
{
    if (waiter->rounds < waiter->policy->spins) {
        waiter->rounds++;
        relax();
        return false;
    }
    return waiter_pause_slow(waiter);
}

#endif
