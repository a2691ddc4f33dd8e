/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - monotonic time. */
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include "base/caller/times.h"

#include <math.h>

/* Rounds seconds for sentences. */
static inline double clock_tenths(double seconds)
{
    return round(10 * seconds) / 10;
}

/* Returns when the log tells next of a wait that began at `began`, and of which it has told so many
 * times: after `late` seconds, then after ten times as many, and so on. INFINITY: never, `late` is
 * 0. */
static inline double clock_reminder(double began, double late, int told)
{
    for (int i = 0; i < told; i++)
        late *= 10;
    return late > 0 ? began + late : INFINITY;
}

#endif
