/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - lines on stderr, or in a file for each rank.
 *
 * The level is read from RONDO_LOG once. Threads may race to be the first to read it: all of them
 * find the same value, and a relaxed atomic is enough because nothing else is published with it. A
 * line goes out in one write(2), which pipes keep whole up to PIPE_BUF (4096) bytes; control
 * characters, which may come from a peer, become '?'.
 *
 * A file is opened when the first line goes to it. The table of files has no lock, since lines are
 * written under every lock there is: an entry is a rank and a descriptor in one word; who loses the
 * race for an entry closes its own descriptor. Files stay open until the process ends.
 */
#include "base/log.h"

#include "base/cancel.h"

#include "base/caller/descriptor.h"
#include "base/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048, LEVEL_UNREAD = -1, FILES_MAX = 16, NO_RANK = -1 };

static const char *const level_names[] = {"none", "warn", "info", "debug"};
static atomic_int level_now = LEVEL_UNREAD;
static _Thread_local int rank_now = NO_RANK;
/* The first rank that a thread of this process speaks for. */
static atomic_int process_rank = NO_RANK;
/* Rank + 2 above, descriptor + 1 below; 0: free. */
static _Atomic uint64_t files[FILES_MAX];

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
    int none = NO_RANK;

    rank_now = rank;
    if (rank >= 0) /* Relaxed: nothing else is published with it. */
        atomic_compare_exchange_strong_explicit(&process_rank, &none, rank, memory_order_relaxed,
                                                memory_order_relaxed);
}

int log_rank(void)
{
    return rank_now >= 0 ? rank_now : atomic_load_explicit(&process_rank, memory_order_relaxed);
}

enum log_level log_alike_level(void)
{
    return log_rank() > 0 ? LOG_DEBUG : LOG_INFO;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void append(char *path, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *path, size_t room, const char *format, ...)
{
    size_t used = strlen(path);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path + used, room - used, format, arguments);
    va_end(arguments);
}

static void append_rank(char *path, size_t room, int rank)
{
    if (rank >= 0)
        append(path, room, "%d", rank);
    else
        append(path, room, "p%d", (int)getpid());
}

/* "%r" is the rank, "%p" the process, "%h" the host; a name without rank and process ends in the
 * rank. */
static void name_file(const char *pattern, int rank, char *path, size_t room)
{
    char host[65] = "";
    bool tells = false;

    path[0] = '\0';
    for (const char *at = pattern; *at; at++) {
        char next = *at == '%' ? at[1] : '\0';

        if (next == 'r') {
            append_rank(path, room, rank);
        } else if (next == 'p') {
            append(path, room, "%d", (int)getpid());
        } else if (next == 'h' && !gethostname(host, sizeof(host) - 1)) {
            append(path, room, "%s", host);
        } else {
            append(path, room, "%c", *at);
            continue;
        }
        tells = tells || next != 'h';
        at++;
    }
    if (!tells) {
        append(path, room, ".");
        append_rank(path, room, rank);
    }
}

static int open_file(const char *pattern, int rank)
{
    static atomic_bool told;
    char path[PATH_MAX];
    int file;

    name_file(pattern, rank, path, sizeof(path));
    file = descriptor_above(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    /* Relaxed: it is a matter of saying it once. */
    if (file < 0 && !atomic_exchange_explicit(&told, true, memory_order_relaxed))
        dprintf(STDERR_FILENO,
                "rondo warn: cannot open %s, of RONDO_LOG_FILE: %s; lines go to "
                "stderr\n",
                path, strerror(errno));
    return file < 0 ? STDERR_FILENO : file;
}

/* The descriptor to write to. */
static int file_of(const char *pattern)
{
    int rank = log_rank();
    uint64_t mine = 0;

    for (int i = 0; i < FILES_MAX; i++) {
        /* Relaxed: the descriptor itself is all there is. */
        uint64_t entry = atomic_load_explicit(&files[i], memory_order_relaxed);

        if (!entry) {
            if (!mine)
                mine = (uint64_t)(rank + 2) << 32 | (uint32_t)(open_file(pattern, rank) + 1);
            if (atomic_compare_exchange_strong_explicit(&files[i], &entry, mine,
                                                        memory_order_relaxed, memory_order_relaxed))
                return (int)(uint32_t)mine - 1;
        }
        if (entry >> 32 == (uint64_t)(rank + 2)) {
            if (mine && (int)(uint32_t)mine - 1 != STDERR_FILENO)
                close((int)(uint32_t)mine - 1);
            return (int)(uint32_t)entry - 1;
        }
    }
    return STDERR_FILENO;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* The folder of a source file, as seen from the root of the project. */
static void room_of(const char *file, char *room, size_t size)
{
    const char *end;

    while (!strncmp(file, "../", 3))
        file += 3;
    end = strrchr(file, '/');
    snprintf(room, size, "%.*s", end ? (int)(end - file) : 0, file);
}

/* RONDO_LOG_ROOMS names the room, or one that it is in; or it names none. */
static bool is_wanted_room(const char *room)
{
    const char *list = setting_read_word(SETTING_LOG_ROOMS);

    if (!*list)
        return true;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");

        if (!strncmp(room, at, length) && (room[length] == '\0' || room[length] == '/'))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static void write_stamp(char *text, size_t size, const char *room)
{
    struct timespec now;
    struct tm local;
    size_t length;

    clock_gettime(CLOCK_REALTIME, &now);
    length = strftime(text, size, "%Y-%m-%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    snprintf(text + length, size - length, ".%06ld %s: ", now.tv_nsec / 1000, room);
}

static void write_whole(int file, const char *line, size_t length)
{
    CANCEL_LATER(); /* write() is a place to be cancelled at, the callers are none */

    while (length > 0) {
        ssize_t done = write(file, line, length);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* nobody to tell */
        line += done;
        length -= (size_t)done;
    }
}

/* "rondo[rank] level: ", and what a line has that is no warning on stderr. */
static void write_head(char *line, size_t size, enum log_level level, const char *stamp)
{
    if (rank_now >= 0)
        snprintf(line, size, "rondo[%d] %s: %s", rank_now, level_names[level], stamp);
    else
        snprintf(line, size, "rondo %s: %s", level_names[level], stamp);
}

void log_write(enum log_level level, const char *file, const char *format, ...)
{
    int number = errno; /* a log line between a system call and its check must not change errno */
    char line[LINE_MAX_BYTES], stamp[96] = "", room[48];
    const char *pattern;
    va_list arguments;
    size_t length;

    if (!log_wants(level))
        return;
    room_of(file, room, sizeof(room));
    if (level > LOG_WARN && !is_wanted_room(room))
        return;
    pattern = setting_read_word(SETTING_LOG_FILE);
    if (*pattern || level > LOG_WARN)
        write_stamp(stamp, sizeof(stamp), room);
    write_head(line, sizeof(line), level, stamp);
    length = strlen(line);
    va_start(arguments, format);
    vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
    va_end(arguments);
    length = strlen(line);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[length++] = '\n';
    write_whole(*pattern ? file_of(pattern) : STDERR_FILENO, line, length);
    errno = number;
}
