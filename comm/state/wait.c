/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - the slow half of waiting. */
#include "comm/state/wait.h"

#include "base/clock.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    YIELDS_PER_LOOK = 16, /* looking at the clock costs a tenth of a yield */
    TURNS_AHEAD = 10,     /* so many more are expected after one that was noticed */
};

/* Until when the host of this virtual machine is expected to run its processors in turns:
 * nanoseconds of the clock, for all threads. */
static _Atomic uint64_t turns_until;

/* Returns how often the thread has left its processor, for another thread or to sleep. */
static long count_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) ? -1 : usage.ru_nvcsw + usage.ru_nivcsw;
}

static double turns_end(void)
{
    return 1e-9 * (double)atomic_load_explicit(&turns_until, memory_order_relaxed);
}

static double doze_after(double now)
{
    return now < turns_end() ? DOZE_TURNS : DOZE_AFTER;
}

/*
 * A thread that stood still for so long although it never left its processor was stopped by the
 * host, which has fewer processors than its virtual machines and runs those in turns. Who spins
 * there uses up a turn before the rank that it waits for may have one; who dozes gives it away.
 */
static void note_turns(struct waiter *waiter, double away)
{
    long switches;

    if (away < TURN_LEAST || away > TURN_MOST || waiter->switches < 0)
        return;
    switches = count_switches();
    if (switches == waiter->switches && waiter->now + TURNS_AHEAD * away > turns_end())
        atomic_store_explicit(&turns_until, (uint64_t)(1e9 * (waiter->now + TURNS_AHEAD * away)),
                              memory_order_relaxed);
    waiter->switches = switches;
}

/* A wait that has lasted for long may last a little longer: looks every 50 us take a tenth of a
 * core, which others may need. */
static double doze_time(const struct waiter *waiter, double least)
{
    double waited = waiter->since > 0 ? waiter->now - waiter->since : 0;

    return fmax(least, fmin(waiter->policy->doze_part * waited,
                            LOOK_PEERS * waiter->policy->ranks_per_core));
}

bool waiter_pause_slow(struct waiter *waiter)
{
    bool looks;

    if (waiter->since > 0 && waiter->now - waiter->since > doze_after(waiter->now)) {
        doze_for(doze_time(waiter, DOZE_PEER * waiter->policy->ranks_per_core));
        waiter->yields = YIELDS_PER_LOOK;
    } else {
        sched_yield();
        waiter->yields++;
    }
    if (waiter->yields < YIELDS_PER_LOOK)
        return false;
    looks = waiter_look(waiter);
    /* Ranks that share a processor leave it all the time, and who waits for a network sleeps. */
    if (waiter->switches < 0 && waiter->policy->ranks_per_core == 1)
        waiter->switches = count_switches();
    return looks;
}

double waiter_sleep(const struct waiter *waiter, bool woken)
{
    int ranks_per_core = waiter->policy->ranks_per_core;

    return woken ? LOOK_PEERS * ranks_per_core
                 : doze_time(waiter, DOZE_PEER * (1 + ranks_per_core / 8));
}

bool waiter_look(struct waiter *waiter)
{
    double before = waiter->now;

    waiter->yields = 0;
    waiter->now = clock_seconds();
    if (waiter->since == 0) {
        waiter->since = waiter->checked = waiter->now;
        waiter->switches = -1;
    } else {
        note_turns(waiter, waiter->now - before);
    }
    if (waiter->now - waiter->checked < LOOK_PEERS * waiter->policy->ranks_per_core)
        return false;
    waiter->checked = waiter->now;
    return true;
}
