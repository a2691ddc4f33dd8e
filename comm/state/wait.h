/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - how to wait: spin while a peer on another core is likely to answer soon, then let others
 * run, then doze. Time is only looked at now and then; the caller is told when it is worth to check
 * whether waiting makes sense.
 */
#ifndef RONDO_COMM_STATE_WAIT_H
#define RONDO_COMM_STATE_WAIT_H

#include <stdbool.h>

struct waiter {
    int spin_rounds; /* of the caller's loop, before yielding */
    int rounds;      /* since something moved */
    int yields;
    int crowd;    /* ranks per core: who waits long looks less often, so that others get on */
    double now;   /* when time was last looked at */
    double since; /* when the present wait began, 0: not yet known */
    double checked;
};

static inline void waiter_init(struct waiter *waiter, int spin_rounds)
{
    *waiter = (struct waiter){.spin_rounds = spin_rounds, .crowd = 1};
}

static inline void waiter_reset(struct waiter *waiter)
{
    waiter->rounds = 0;
    waiter->since = 0;
}

/* One pause. True about every millisecond of waiting: check on the peers; `now` is fresh. */
bool waiter_pause_slow(struct waiter *waiter);
/* As waiter_pause_slow(), for a caller that has slept for a while in a way of its own. */
bool waiter_look(struct waiter *waiter);

static inline void wait_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline bool waiter_pause(struct waiter *waiter)
{
    if (waiter->rounds < waiter->spin_rounds) {
        waiter->rounds++;
        wait_relax();
        return false;
    }
    return waiter_pause_slow(waiter);
}

#endif
