/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.h - politeness of those who wait for a word in memory: few processors are shared by many
 * streams.
 */
#pragma once

#include <sched.h>
#include <time.h>

struct poll {
    unsigned turns; /* 0 at first */
};

/* One turn of a wait: spins at first, then yields, then sleeps, longer and longer up to a fifth
 * of a millisecond. */
static inline void poll_pause(struct poll *poll)
{
    unsigned turn = poll->turns++;
    if (turn < 64)
        return;
    if (turn < 256) {
        sched_yield();
        return;
    }
    long nanoseconds = turn < 1000 ? 20000 : 200000;
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}
