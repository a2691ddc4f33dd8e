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

static void put_lines(struct run_tag *tag, bool all)
{
    char *line = tag->line + MARK, *end = line + tag->filled;
    char *newline;

    while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
        put_line(tag, line, (size_t)(newline - line));
        line = newline + 1;
    }
    if (line < end && (all || end - line == LINE)) {
        put_line(tag, line, (size_t)(end - line));
        line = end;
    }
    tag->filled = (size_t)(end - line);
    memmove(tag->line + MARK, line, tag->filled);
}

void run_tag_move(struct run_tag *tag)
{
    ssize_t done;

    while (tag->from >= 0) {
        done = read(tag->from, tag->line + MARK + tag->filled, LINE - tag->filled);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN)
            return;
        if (done > 0)
            tag->filled += (size_t)done;
        put_lines(tag, done <= 0);
        if (done <= 0) {
            close(tag->from);
            tag->from = -1;
        }
    }
}

void run_tag_done(struct run_tag *tag)
{
    if (!tag->line)
        return;
    run_tag_move(tag);
    put_lines(tag, true);
    if (tag->from >= 0) /* something that the rank has left behind still holds the other end */
        close(tag->from);
    free(tag->line);
    tag->line = NULL;
    tag->from = -1;
}
