/* SPDX-License-Identifier: BSD-3-Clause */
/* patience.c - see patience.h. */
#include "patience.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A lock may hold up a thread that is not in its wait yet, but not in so many looks. */
enum { LOOKS_ASLEEP = 20, LOOKS_SPINNING = 20000, LOOK_US = 500 };
static const double FACTOR_MOST = 20; /* a test of a time-out has to end */

/* Returns how many threads share a core, this one included: over the last minute, or now if those
 * are more. */
static double measure_load(void)
{
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN), minute = 0;
    FILE *file = fopen("/proc/loadavg", "re");
    int running = 0;

    if (file && fscanf(file, "%lf %*f %*f %d", &minute, &running) == 2 && running > minute)
        minute = running;
    if (file)
        fclose(file);
    return minute / cores < FACTOR_MOST - 1 ? 1 + minute / cores : FACTOR_MOST;
}

double world_patience(double seconds)
{
    static _Atomic double factor;
    double none = 0;

    /* Relaxed: only the number matters. The first of several threads gives the factor to all. */
    if (atomic_load_explicit(&factor, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong_explicit(&factor, &none, measure_load(),
                                                memory_order_relaxed, memory_order_relaxed);
    return seconds * atomic_load_explicit(&factor, memory_order_relaxed);
}

/* Returns the letter of the thread's state, 0: there is no such thread. */
static char thread_state(pid_t thread)
{
    char path[40], line[256] = "", *name_end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)thread);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    name_end = strrchr(line, ')');
    return name_end && name_end[1] ? name_end[2] : '\0';
}

static bool await_sleep(pid_t thread, long looks_most)
{
    int asleep = 0;

    for (long looks = 0; asleep < LOOKS_ASLEEP && looks < looks_most; looks++, usleep(LOOK_US)) {
        char state = thread_state(thread);

        if (!state || state == 'Z' || state == 'X')
            return false;
        asleep += state == 'S';
    }
    return true;
}

bool world_await_sleep(pid_t thread)
{
    return await_sleep(thread, LONG_MAX);
}

bool world_await_sleep_or_spin(pid_t thread)
{
    return await_sleep(thread, LOOKS_SPINNING);
}

bool world_await_told(const _Atomic pid_t *thread)
{
    pid_t told;

    /* Relaxed: only the number matters. */
    while (!(told = atomic_load_explicit(thread, memory_order_relaxed)))
        usleep(LOOK_US);
    return world_await_sleep(told);
}

/* False: a thread of the process, other than this one, is not asleep. */
static bool process_sleeps(pid_t process)
{
    char path[40];
    bool sleeps = true;
    struct dirent *entry;
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    threads = opendir(path);
    while (threads && sleeps && (entry = readdir(threads))) {
        pid_t thread = atoi(entry->d_name);

        if (thread > 0 && thread != gettid())
            sleeps = thread_state(thread) == 'S';
    }
    if (threads)
        closedir(threads);
    return sleeps;
}

void world_await_quiet(const pid_t *processes, int count)
{
    for (int quiet = 0; quiet < LOOKS_ASLEEP; usleep(LOOK_US)) {
        bool sleep = true;

        for (int i = 0; i < count && sleep; i++)
            sleep = process_sleeps(processes[i]);
        quiet = sleep ? quiet + 1 : 0;
    }
}
