/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.c - the learning rate of a step.
 *
 * Linear scaling: n ranks look at n times the samples per step and so may go n times as far. At the
 * start, when weights change quickly, that does not hold; so the rate is warmed up first. Then half
 * a cosine leads it down to its floor.
 */
#include "rondo/train.h"

#include <math.h>

double rondo_schedule_rate(const rondo_schedule *schedule, uint64_t step)
{
    static const double pi = 3.14159265358979323846;
    double peak = schedule->rate * (schedule->ranks > 0 ? schedule->ranks : 1), progress;

    if (step < schedule->warmup) {
        progress = (double)(step + 1) / (double)schedule->warmup;
        return schedule->start + (peak - schedule->start) * progress;
    }
    if (schedule->steps == 0)
        return peak;
    if (step >= schedule->steps)
        return schedule->floor;
    progress = (double)(step - schedule->warmup) / (double)(schedule->steps - schedule->warmup);
    return schedule->floor + (peak - schedule->floor) * 0.5 * (1 + cos(pi * progress));
}
