/* SPDX-License-Identifier: BSD-3-Clause */
/* stores.c - trials of all ways to store, see stores.h. */
#include "comm/state/stores.h"

enum {
    SOONEST = 8,    /* calls before the first trials */
    LONGER = 4,     /* how much longer each pause is than the one before */
    LONGEST = 1024, /* pause */
    LONGEST_OF_LONG = 128,
    TRIAL_CALLS = 3, /* of each way, the first of which does not count */
    TRIAL_CALLS_OF_LONG = 2,
};
static const double BETTER = 0.95; /* a way has to beat those before it by so much */

void stores_open(struct stores *stores, unsigned ways, unsigned way, bool is_long)
{
    if (!ways)
        ways = 1;
    while (!(ways & 1u << way))
        way = (way + 1) % STORES_WAYS;
    *stores = (struct stores){.ways = ways,
                              .way = way,
                              .now = way,
                              .is_long = is_long,
                              .pause = SOONEST,
                              .until = SOONEST};
}

/* The first way to try from `way` on; STORES_WAYS: there is none. */
static unsigned next_way(const struct stores *stores, unsigned way)
{
    while (way < STORES_WAYS && !(stores->ways & 1u << way))
        way++;
    return way;
}

/* One call that somebody disturbed should not decide: old and new count alike if they are near. */
static void keep_time(double *kept, double seconds)
{
    bool near = *kept > seconds / 2 && *kept < seconds * 2;

    *kept = near ? (*kept + seconds) / 2 : seconds;
}

/* Ranks that measure nearly the same choose the same: a later way has to be clearly better. */
static unsigned best_way(const struct stores *stores)
{
    unsigned best = next_way(stores, 0);

    for (unsigned way = next_way(stores, best + 1); way < STORES_WAYS;
         way = next_way(stores, way + 1))
        if (stores->times[way] < BETTER * stores->times[best])
            best = way;
    return best;
}

static bool end_trials(struct stores *stores)
{
    unsigned longest = stores->is_long ? LONGEST_OF_LONG : LONGEST;
    unsigned before = stores->way;

    stores->trying = false;
    stores->way = stores->now = best_way(stores);
    stores->pause = LONGER * stores->pause < longest ? LONGER * stores->pause : longest;
    stores->until = stores->pause;
    return stores->way != before;
}

bool stores_note(struct stores *stores, double seconds)
{
    if (!stores->trying) {
        if (--stores->until)
            return false;
        stores->trying = true;
        stores->now = next_way(stores, 0);
        stores->tried = 0;
        return false;
    }
    /* The first call of a way finds what another one has left in the caches. */
    if (stores->tried++ == 0)
        return false;
    if (stores->tried == 2 || seconds < stores->least)
        stores->least = seconds;
    if (stores->tried < (stores->is_long ? TRIAL_CALLS_OF_LONG : TRIAL_CALLS))
        return false;
    keep_time(&stores->times[stores->now], stores->least);
    stores->tried = 0;
    stores->now = next_way(stores, stores->now + 1);
    return stores->now == STORES_WAYS && end_trials(stores);
}
