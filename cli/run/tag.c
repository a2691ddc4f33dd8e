/* SPDX-License-Identifier: BSD-3-Clause */
/* tag.c - lines of ranks with "[rank] " before them, each written whole. */
#include "cli/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARK = 16, LINE = 65536 }; /* room for the mark; longer lines are cut */

bool run_tag_init(struct run_tag *tag, int rank, int to, int *ret_rank_end)
{
    int ends[2];

    memset(tag, 0, sizeof(*tag));
    tag->from = -1;
    tag->line = malloc(MARK + LINE + 1);
    if (!tag->line)
        return false;
    if (pipe2(ends, O_CLOEXEC)) {
        free(tag->line);
        tag->line = NULL;
        return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* our end only: the rank writes as to a file */
    tag->from = ends[0];
    tag->to = to;
    tag->rank = rank;
    *ret_rank_end = ends[1];
    return true;
}

static void write_whole(int to, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(to, bytes, count);
        struct pollfd wait = {.fd = to, .events = POLLOUT};

        if (done < 0 && errno == EAGAIN)
            poll(&wait, 1, -1); /* somebody made our stdout non-blocking */
        else if (done < 0 && errno != EINTR)
            return; /* nobody reads it */
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
}

/* Write `count` bytes of the line and a newline, mark and all in one go. */
static void put_line(struct run_tag *tag, char *line, size_t count)
{
    char mark[MARK + 1];
    size_t length = (size_t)snprintf(mark, sizeof(mark), "[%d] ", tag->rank);
    char after = line[count];

    /* The bytes before a line are room, or a line that is out already. */
    memcpy(line - length, mark, length);
    line[count] = '\n';
    write_whole(tag->to, line - length, length + count + 1);
    line[count] = after;
}

static bool has_room(int to)
{
    struct pollfd room = {.fd = to, .events = POLLOUT};

    return poll(&room, 1, 0) != 0;
}

/* Puts out whole lines; unless `patient` only while our output takes them, as whoever waits there
 * takes no signals. A line longer than PIPE_BUF may wait all the same. */
static void put_lines(struct run_tag *tag, bool patient)
{
    char *line = tag->line + MARK, *end = line + tag->filled;

    tag->waits = false;
    while (line < end) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *stop = newline ? newline : end;

        if (!newline && end - line < LINE)
            break;
        tag->waits = !patient && !has_room(tag->to);
        if (tag->waits)
            break;
        put_line(tag, line, (size_t)(stop - line));
        line = stop + (newline != NULL);
    }
    tag->filled = (size_t)(end - line);
    memmove(tag->line + MARK, line, tag->filled);
}

/* The rank says no more: the rest is a line. */
static void end_output(struct run_tag *tag)
{
    char *end = tag->line + MARK + tag->filled;

    if (tag->filled && tag->filled < LINE && end[-1] != '\n')
        tag->line[MARK + tag->filled++] = '\n';
    if (tag->from >= 0)
        close(tag->from);
    tag->from = -1;
}

/* Reads once, where no line waits for our output. The bytes read. */
static size_t take_some(struct run_tag *tag)
{
    ssize_t done = read(tag->from, tag->line + MARK + tag->filled, LINE - tag->filled);

    if (done > 0)
        tag->filled += (size_t)done;
    else if (done == 0 || (errno != EINTR && errno != EAGAIN))
        end_output(tag);
    return done > 0 ? (size_t)done : 0;
}

void run_tag_move(struct run_tag *tag)
{
    if (!tag->waits)
        take_some(tag);
    put_lines(tag, false);
}

/* Reads no more than fills the pipe, as a process that the rank has left may write for ever. */
void run_tag_done(struct run_tag *tag, bool patient)
{
    long left = fcntl(tag->from, F_GETPIPE_SZ); /* -1 where it is closed */
    size_t done;

    if (!tag->line)
        return;
    do {
        put_lines(tag, patient);
        done = left > 0 && !tag->waits ? take_some(tag) : 0;
        left -= (long)done;
    } while (done > 0);
    if (!tag->waits) {
        end_output(tag);
        put_lines(tag, patient);
    }
    if (tag->waits)
        return;
    free(tag->line);
    tag->line = NULL;
}
