/* SPDX-License-Identifier: BSD-3-Clause */
/* work.c - multiply and add in a few cache lines; read what the kernel knows of our memory. */
#include "bench/work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { NUMBERS = 64, TRIES = 10 };

#define TRY_LOOPS 10000.0 /* about a millisecond */

/* The compiler would leave out what nobody keeps. */
static _Atomic double result;

double work_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void compute(double loops)
{
    double numbers[NUMBERS];
    double sum = 0;

    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    for (double loop = 0; loop < loops; loop++)
        for (int i = 0; i < NUMBERS; i++)
            numbers[i] = numbers[i] * 0.999 + 0.001;
    for (int i = 0; i < NUMBERS; i++)
        sum += numbers[i];
    /* Relaxed: nobody reads it. */
    atomic_store_explicit(&result, sum, memory_order_relaxed);
}

/* Loops per second. The fastest try: everything else only makes one longer. */
static double measure_speed(void)
{
    double fastest = 0;

    for (int i = 0; i < TRIES; i++) {
        double start = work_clock();
        double seconds;

        compute(TRY_LOOPS);
        seconds = work_clock() - start;
        if (seconds > 0 && TRY_LOOPS / seconds > fastest)
            fastest = TRY_LOOPS / seconds;
    }
    return fastest;
}

void work_learn(double *speed)
{
    if (*speed <= 0)
        *speed = measure_speed();
}

void work_do(double *speed, double seconds)
{
    double start, took;

    if (seconds <= 0)
        return;
    work_learn(speed);
    start = work_clock();
    compute(seconds * *speed);
    took = work_clock() - start;
    /* The speed came of tries that were disturbed, all of them, or the processor is faster now. */
    if (took > 0 && took < seconds)
        *speed *= seconds / took;
}

double work_memory(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    double kilobytes = -1;

    while (file && kilobytes < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, "Pss: %lf", &kilobytes) != 1)
            kilobytes = -1;
    if (file)
        fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}
