/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.c - see trial.h. */
#include "comm/state/trial.h"

#include <math.h>

enum { LONGER = 4 };               /* how much longer each pause is than the one before */
static const double BETTER = 0.95; /* a way has to beat those before it by so much */

/* The first way to try from `way` on; TRIAL_WAYS: there is none. */
static unsigned next_way(const struct trial *trial, unsigned way)
{
    while (way < TRIAL_WAYS && !(trial->ways & 1u << way))
        way++;
    return way;
}

static void begin_trials(struct trial *trial)
{
    trial->trying = true;
    trial->now = next_way(trial, 0);
    trial->tried = 0;
}

void trial_init(struct trial *trial, const struct trial_rules *rules, unsigned ways, unsigned way)
{
    if (!ways)
        ways = 1;
    while (!(ways & 1u << way))
        way = (way + 1) % TRIAL_WAYS;
    *trial = (struct trial){.rules = rules,
                            .ways = ways,
                            .way = way,
                            .now = way,
                            .pause = rules->pause,
                            .until = rules->first};
    if (!trial->until)
        begin_trials(trial);
}

/* One call that somebody disturbed should not decide: old and new count alike if they are near. */
static void keep_time(double *kept, double seconds)
{
    bool near = *kept > seconds / 2 && *kept < seconds * 2;

    *kept = near ? (*kept + seconds) / 2 : seconds;
}

/* Ranks that measure nearly the same choose the same: a later way has to be clearly better. */
static unsigned best_way(const struct trial *trial)
{
    unsigned best = next_way(trial, 0);

    for (unsigned way = next_way(trial, best + 1); way < TRIAL_WAYS; way = next_way(trial, way + 1))
        if (trial->times[way] < BETTER * trial->times[best])
            best = way;
    return best;
}

static bool end_trials(struct trial *trial)
{
    unsigned longest = trial->rules->longest, before = trial->way;

    trial->trying = false;
    trial->way = trial->now = best_way(trial);
    trial->until = trial->pause;
    trial->pause = LONGER * trial->pause < longest ? LONGER * trial->pause : longest;
    return trial->way != before;
}

bool trial_note(struct trial *trial, unsigned went, double seconds)
{
    const struct trial_rules *rules = trial->rules;
    unsigned timed;

    if (!trial->trying) {
        if (!--trial->until)
            begin_trials(trial);
        return false;
    }
    /* The first call of a way finds what another one has left in the caches, or pages that nobody
     * has touched. */
    if (trial->tried++ < rules->skipped) {
        trial->least = INFINITY;
        trial->sum = 0;
        return false;
    }
    trial->sum += went == trial->now ? seconds : INFINITY;
    timed = trial->tried - rules->skipped;
    if (timed % rules->as_one == 0) {
        trial->least = fmin(trial->least, trial->sum / rules->as_one);
        trial->sum = 0;
    }
    if (timed < rules->timed)
        return false;
    keep_time(&trial->times[trial->now], trial->least);
    trial->tried = 0;
    trial->now = next_way(trial, trial->now + 1);
    return trial->now == TRIAL_WAYS && end_trials(trial);
}
