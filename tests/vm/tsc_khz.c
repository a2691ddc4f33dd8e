/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsc_khz.c - prints how many thousands the time stamp counter of this processor counts a second,
 * for rxe-vm. A guest counts along with it. If it had to find out the rate itself, beside other
 * programs, it might find a tenth of it, and its seconds would last a tenth of ours.
 */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct moment {
    double seconds;
    unsigned long long count;
};

static double seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Looks at both clocks many times, and keeps the look that nothing came between. */
static struct moment look(void)
{
    struct moment best = {0, 0};
    double shortest = 1e9;

    for (int i = 0; i < 100; i++) {
        double before = seconds();
        unsigned long long count = __rdtsc();
        double after = seconds();

        if (after - before >= shortest)
            continue;
        shortest = after - before;
        best = (struct moment){(before + after) / 2, count};
    }
    return best;
}

int main(void)
{
    struct timespec while_it_counts = {0, 50 * 1000 * 1000};
    struct moment first = look(), last;

    nanosleep(&while_it_counts, NULL);
    last = look();
    printf("%.0f\n", (double)(last.count - first.count) / (last.seconds - first.seconds) / 1000);
    return 0;
}
