/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - the slow half of waiting. */
#include "comm/state/wait.h"

#include "base/clock.h"

#include <sched.h>

enum { YIELDS_PER_LOOK = 16 }; /* looking at the clock costs a tenth of a yield */

bool waiter_pause_slow(struct waiter *waiter)
{
    if (waiter->since > 0 && waiter->now - waiter->since > DOZE_AFTER) {
        doze_for(DOZE_PEER * waiter->policy->ranks_per_core);
        waiter->yields = YIELDS_PER_LOOK;
    } else {
        sched_yield();
        waiter->yields++;
    }
    return waiter->yields < YIELDS_PER_LOOK ? false : waiter_look(waiter);
}

double waiter_sleep(const struct waiter *waiter, bool woken)
{
    int ranks_per_core = waiter->policy->ranks_per_core;

    return woken ? LOOK_PEERS * ranks_per_core : DOZE_PEER * (1 + ranks_per_core / 8);
}

bool waiter_look(struct waiter *waiter)
{
    waiter->yields = 0;
    waiter->now = clock_seconds();
    if (waiter->since == 0)
        waiter->since = waiter->checked = waiter->now;
    if (waiter->now - waiter->checked < LOOK_PEERS * waiter->policy->ranks_per_core)
        return false;
    waiter->checked = waiter->now;
    return true;
}
