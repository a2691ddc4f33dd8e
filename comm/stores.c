/* SPDX-License-Identifier: BSD-3-Clause */
/* stores.c - trials of other ways to store, see stores.h. */
#include "comm/stores.h"

enum { TRIAL_CALLS = 3, SOONEST = 8, LATEST = 1024 };
static const double BETTER = 0.95;  /* a way has to win by so much */
static const double HOPELESS = 1.5; /* ends a trial at once */
static const double CHANGED = 1.25; /* times have changed: try again soon */

void stores_open(struct stores *stores, unsigned ways, unsigned way, int rank)
{
    if (!ways)
        ways = 1;
    while (!(ways & 1u << way))
        way = (way + 1) % STORES_WAYS;
    *stores = (struct stores){
        .ways = ways, .way = way, .now = way, .pause = 1, .stagger = rank % 4 * (TRIAL_CALLS + 1)};
    stores->until = SOONEST + stores->stagger;
}

static void begin_trial(struct stores *stores)
{
    do
        stores->now = (stores->now + 1) % STORES_WAYS;
    while (!(stores->ways & 1u << stores->now));
    stores->tried = 0;
    stores->least = 0;
}

/* The next trial, if there is another way left, follows at once; after the last one comes a pause. */
static void next_trial(struct stores *stores, unsigned space)
{
    stores->pause = stores->pause * space < LATEST ? stores->pause * space : LATEST;
    begin_trial(stores);
    if (stores->now != stores->way)
        return;
    stores->until = stores->pause + stores->stagger;
    stores->settled = stores->usual;
}

static bool note_trial(struct stores *stores, double seconds)
{
    bool hopeless = seconds > HOPELESS * stores->usual;

    if (!stores->tried++ || seconds < stores->least)
        stores->least = seconds;
    if (stores->tried < TRIAL_CALLS && !hopeless)
        return false;
    if (stores->least < BETTER * stores->usual) {
        stores->way = stores->now;
        stores->usual = stores->settled = stores->least;
        stores->pause = SOONEST;
        stores->until = SOONEST + stores->stagger;
        return true;
    }
    next_trial(stores, hopeless ? 4 : 2);
    return false;
}

bool stores_note(struct stores *stores, double seconds)
{
    if (stores->now != stores->way)
        return note_trial(stores, seconds);
    /* The least of late: down at once, up slowly. */
    if (!(stores->usual > 0) || seconds < stores->usual)
        stores->usual = seconds;
    else
        stores->usual += (seconds - stores->usual) / 8;
    if (stores->usual > CHANGED * stores->settled || CHANGED * stores->usual < stores->settled) {
        stores->settled = stores->usual;
        stores->pause = SOONEST;
        if (stores->until > SOONEST + stores->stagger)
            stores->until = SOONEST + stores->stagger;
    }
    if (stores->until) {
        stores->until--;
        return false;
    }
    begin_trial(stores);
    return false;
}
