/* SPDX-License-Identifier: BSD-3-Clause */
/* log_copy.h - for tests that wait until a line is in the log. */
#ifndef RONDO_TESTS_LOG_COPY_H
#define RONDO_TESTS_LOG_COPY_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The log of this process goes to a file in memory, which is returned; waits are told in it when
 * they have lasted for `late` seconds. Before anything is logged. */
static inline int log_copy_open(const char *late)
{
    int file = memfd_create("log", MFD_CLOEXEC);

    setenv("RONDO_LOG", "warn", 1);
    setenv("RONDO_LATE", late, 1);
    dup2(file, STDERR_FILENO);
    return file;
}

/* True as soon as the text is in it, false if that takes a minute. */
static inline bool log_copy_awaits(int file, const char *text)
{
    double until = clock_seconds() + 60;
    char log[8192] = "";

    while (!strstr(log, text) && clock_seconds() < until) {
        usleep(1000);
        log[pread(file, log, sizeof(log) - 1, 0)] = '\0';
    }
    return strstr(log, text) != NULL;
}

#endif
