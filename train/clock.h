/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - seconds. */
#ifndef RONDO_TRAIN_CLOCK_H
#define RONDO_TRAIN_CLOCK_H

#include <time.h>

static inline double clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
