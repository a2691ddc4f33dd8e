/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent.c - `rondo run --agent`, which a `rondo run --hosts` elsewhere starts on each host: the
 * order comes on standard input (hosts.c), and when that ends, so does the job.
 */
#include "cli/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_whole(char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = read(STDIN_FILENO, to, bytes);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        to += done;
        bytes -= (size_t)done;
    }
    return true;
}

/* All strings of the order, NULL after a message. */
static char *read_order(size_t *ret_bytes)
{
    char head[RUN_ORDER_HEAD + 1] = "", again[RUN_ORDER_HEAD + 1];
    size_t bytes = 0;
    char *text = NULL;

    if (read_whole(head, RUN_ORDER_HEAD) && sscanf(head, RUN_ORDER_FORMAT, &bytes) == 1 &&
        bytes > 0 && bytes <= RUN_ORDER_MAX) {
        snprintf(again, sizeof(again), RUN_ORDER_FORMAT, bytes);
        text = strcmp(head, again) ? NULL : malloc(bytes);
    }
    if (text && read_whole(text, bytes) && !text[bytes - 1]) {
        *ret_bytes = bytes;
        return text;
    }
    free(text);
    fprintf(stderr, "rondo run: --agent is for `rondo run --hosts` of this same version, which "
                    "gives it its order on standard input\n");
    return NULL;
}

/* The part of the order that is still to be read. */
struct reader {
    char *at, *end;
};

static char *next(struct reader *reader)
{
    static char nothing[] = "";
    char *text = reader->at;

    if (text >= reader->end)
        return nothing;
    reader->at += strlen(text) + 1;
    return text;
}

static double next_number(struct reader *reader)
{
    return atof(next(reader));
}

/* A number of ranks or variables; -1: it cannot be one. */
static int next_count(struct reader *reader)
{
    double number = next_number(reader);

    return number >= 0 && number <= RUN_ORDER_MAX ? (int)number : -1;
}

/* The program's argv from here on. */
static char **rest(struct reader *reader)
{
    size_t count = 0;
    char **list;

    for (char *at = reader->at; at < reader->end; at += strlen(at) + 1)
        count++;
    list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++)
        list[i] = next(reader);
    return list;
}

static void set_variable(char *text)
{
    char *equals = strchr(text, '=');

    if (!equals)
        return;
    *equals = '\0';
    setenv(text, equals + 1, 1);
}

static bool is_possible(const struct run_job *job)
{
    return job->size >= 1 && job->first >= 0 && job->world <= RUN_RANKS_MAX &&
           job->size <= job->world - job->first && job->program && job->program[0];
}

bool run_agent_parse(struct run_job *job, char *order, size_t bytes, const char **ret_folder)
{
    struct reader reader = {order, order + bytes};

    job->size = next_count(&reader);
    job->first = next_count(&reader);
    job->world = next_count(&reader);
    job->bind = next_number(&reader) != 0;
    job->tag = next_number(&reader) != 0;
    job->grace = next_number(&reader);
    *ret_folder = next(&reader);
    snprintf(job->address, sizeof(job->address), "%s", next(&reader));
    snprintf(job->secret, sizeof(job->secret), "%s", next(&reader));
    for (int left = next_count(&reader); left > 0 && reader.at < reader.end; left--)
        set_variable(next(&reader));
    job->program = rest(&reader);
    return is_possible(job);
}

int run_agent_read(struct run_job *job)
{
    size_t bytes = 0;
    const char *folder;

    job->order = read_order(&bytes);
    if (!job->order)
        return RUN_EXIT_USAGE;
    if (!run_agent_parse(job, job->order, bytes, &folder)) {
        fprintf(stderr, "rondo run: the order for this host makes no sense\n");
        return RUN_EXIT_USAGE;
    }
    if (chdir(folder))
        fprintf(stderr, "rondo run: there is no folder %s on this host: %s\n", folder,
                strerror(errno));
    /* Ranks get another standard input; and our own output may go nowhere, when ssh has ended. */
    job->control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    signal(SIGPIPE, SIG_IGN);
    return job->control < 0 ? RUN_EXIT_FAILED : 0;
}

bool run_agent_is_over(const struct run_job *job)
{
    char byte;

    return read(job->control, &byte, 1) == 0;
}

void run_agent_done(struct run_job *job)
{
    if (!job->order)
        return;
    free(job->program);
    free(job->order);
    if (job->control >= 0)
        close(job->control);
}
