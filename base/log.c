/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - lines on stderr.
 *
 * The level is read from RONDO_LOG once. Threads may race to be the first to read it: all of them
 * find the same value, and a relaxed atomic is enough because nothing else is published with it. A
 * line goes out in one write(2), which pipes keep whole up to PIPE_BUF (4096) bytes; control
 * characters, which may come from a peer, become '?'.
 */
#include "base/log.h"

#include "base/cancel.h"

#include "base/setting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048, LEVEL_UNREAD = -1 };

static const char *const level_names[] = {"none", "warn", "info", "debug"};
static atomic_int level_now = LEVEL_UNREAD;
static _Thread_local int rank_now = -1;

static int level_named(const char *word)
{
    for (int level = LOG_NONE; level <= LOG_DEBUG; level++)
        if (!strcmp(word, level_names[level]))
            return level;
    return LEVEL_UNREAD;
}

static int level_read(void)
{
    const char *word = setting_read_word(SETTING_LOG);
    int level = level_named(word);
    int unread = LEVEL_UNREAD;
    bool known = level != LEVEL_UNREAD;

    if (!known)
        level = LOG_WARN;
    if (atomic_compare_exchange_strong_explicit(&level_now, &unread, level, memory_order_relaxed,
                                                memory_order_relaxed) &&
        !known)
        log_warn("RONDO_LOG is '%s': accepted are none, warn, info and debug; taking warn", word);
    return level;
}

bool log_wants(enum log_level level)
{
    int now = atomic_load_explicit(&level_now, memory_order_relaxed);

    if (now == LEVEL_UNREAD)
        now = level_read();
    return (int)level <= now && level != LOG_NONE;
}

void log_set_rank(int rank)
{
    rank_now = rank;
}

static void write_whole(const char *line, size_t length)
{
    CANCEL_LATER(); /* write() is a place to be cancelled at, the callers are none */

    while (length > 0) {
        ssize_t done = write(STDERR_FILENO, line, length);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* nobody to tell */
        line += done;
        length -= (size_t)done;
    }
}

void log_write(enum log_level level, const char *format, ...)
{
    int number = errno; /* a log line between a system call and its check must not change errno */
    char line[LINE_MAX_BYTES];
    va_list arguments;
    size_t length;

    if (!log_wants(level))
        return;
    if (rank_now >= 0)
        snprintf(line, sizeof(line), "rondo[%d] %s: ", rank_now, level_names[level]);
    else
        snprintf(line, sizeof(line), "rondo %s: ", level_names[level]);
    length = strlen(line);
    va_start(arguments, format);
    vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
    va_end(arguments);
    length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    write_whole(line, length);
    errno = number;
}
