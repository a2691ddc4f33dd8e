/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.c - `rondo run --hosts node1:2,node2:2 PROGRAM`: an ssh for each host, on which another
 * `rondo run` (agent.c) starts the ranks of that host.
 *
 *     here    ssh node1 "rondo run --agent"  <- order on standard input; its end is the job's end
 *             ssh node2 "rondo run --agent"  <- order
 *
 * The order holds all that the ranks need, also program, variables and the job's secret: no command
 * line shows it, and no shell takes it apart. The ssh's are watched over as ranks are.
 */
#include "cli/common/remote.h"
#include "cli/run/job.h"

#include "base/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { FIRST_PORT = 20000, PORTS = 10000 }; /* below those of the system */

/* ---- The list -------------------------------------------------------------------------------- */

/* "node1", "user@node1:2", "[fd00::1]:2" */
static bool read_host(const char *text, size_t length, struct run_host *ret_host)
{
    const char *end = text + length, *colon = NULL, *open = memchr(text, '[', length);
    const char *from = open ? memchr(open, ']', (size_t)(end - open)) : text;
    long slots = 0;

    if (from)
        colon = memchr(from, ':', (size_t)(end - from));
    if (colon) {
        char *after;

        errno = 0;
        slots = strtol(colon + 1, &after, 10);
        if (errno || after != end || after == colon + 1 || slots < 1 || slots > RUN_RANKS_MAX)
            return false;
        length = (size_t)(colon - text);
    }
    /* Who begins with - would be an option of ssh. */
    if (!from || !length || length >= sizeof(ret_host->name) || *text == '-')
        return false;
    memcpy(ret_host->name, text, length);
    ret_host->name[length] = '\0';
    ret_host->slots = (int)slots;
    ret_host->control = -1;
    return true;
}

/* NULL after a message. */
static struct run_host *read_list(const char *list, int *ret_count)
{
    struct run_host *hosts;
    int count = 1;

    for (const char *at = list; *at; at++)
        count += *at == ',';
    hosts = calloc((size_t)count, sizeof(*hosts));
    for (int i = 0; hosts && i < count; i++) {
        size_t length = strcspn(list, ",");

        if (!read_host(list, length, &hosts[i])) {
            fprintf(stderr,
                    "rondo run: --hosts has '%.*s': accepted are NAME, NAME:RANKS, "
                    "USER@NAME:RANKS and [ADDRESS]:RANKS, with commas between\n",
                    (int)length, list);
            free(hosts);
            return NULL;
        }
        list += length + (list[length] == ',');
    }
    *ret_count = count;
    return hosts;
}

/* In the order of the list, as many as each has room for; all alike if none says how many. */
static bool share_out(struct run_job *job)
{
    const int count = job->host_count;
    int room = 0, left;

    for (int i = 0; i < count; i++)
        room += job->hosts[i].slots;
    if (!room && !job->world) {
        fprintf(stderr, "rondo run: how many ranks? Give -n, or --hosts NAME:RANKS,...\n");
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!job->hosts[i].slots)
            job->hosts[i].slots = room ? 1 : job->world / count + (i < job->world % count);
    for (int i = room = 0; i < count; i++)
        room += job->hosts[i].slots;
    if (!job->world)
        job->world = room;
    if (job->world > room || job->world > RUN_RANKS_MAX) {
        fprintf(stderr, "rondo run: -n %d is more than --hosts has room for, %d\n", job->world,
                room < RUN_RANKS_MAX ? room : RUN_RANKS_MAX);
        return false;
    }
    left = job->world;
    for (job->size = 0; job->size < count && left > 0; job->size++) {
        struct run_host *host = &job->hosts[job->size];

        host->first = job->world - left;
        host->slots = host->slots < left ? host->slots : left;
        left -= host->slots;
    }
    return true;
}

/* Rank 0 listens there, where the others know its host by the name that the list has. */
static int choose_address(struct run_job *job)
{
    const char *set = setting_read_word(SETTING_ADDRESS);
    const char *name = job->hosts[0].name, *at = strrchr(name, '@');
    const int room = sizeof(job->address);
    uint16_t noise;
    int length;

    if (getrandom(&noise, sizeof(noise), 0) != sizeof(noise)) {
        fprintf(stderr, "rondo run: no random numbers: %s\n", strerror(errno));
        return RUN_EXIT_FAILED;
    }
    if (*set)
        length = snprintf(job->address, (size_t)room, "%s", set);
    else
        length = snprintf(job->address, (size_t)room, "%s:%d", at ? at + 1 : name,
                          FIRST_PORT + noise % PORTS);
    if (length < room)
        return 0;
    fprintf(stderr,
            "rondo run: the meeting point would have %d characters, more than %d: set "
            "RONDO_ADDRESS to HOST:PORT of host %s\n",
            length, room - 1, name);
    return RUN_EXIT_USAGE;
}

int run_hosts_read(struct run_job *job, const char *list)
{
    job->what = "host";
    job->hosts = read_list(list, &job->host_count);
    if (!job->hosts || !share_out(job))
        return RUN_EXIT_USAGE;
    return choose_address(job);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

/* Settings go along, what says who a rank is does not. */
static bool goes_along(const char *variable)
{
    static const char *const own[] = {"RONDO_RANK=",    "RONDO_SIZE=", "RONDO_LOCAL_",
                                      "RONDO_ADDRESS=", "RONDO_BIND=", "RONDO_SECRET="};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (!strncmp(variable, own[i], strlen(own[i])))
            return false;
    return !strncmp(variable, "RONDO_", 6);
}

static void write_variables(const struct run_job *job, FILE *to)
{
    extern char **environ;
    int count = job->variable_count;

    for (char **at = environ; *at; at++)
        count += goes_along(*at);
    fprintf(to, "%d%c", count, 0);
    for (char **at = environ; *at; at++)
        if (goes_along(*at))
            fprintf(to, "%s%c", *at, 0);
    for (int i = 0; i < job->variable_count; i++)
        fprintf(to, "%s%c", job->variables[i], 0);
}

/* Strings, each with its 0; false: there is no memory for them. */
static bool write_order(const struct run_job *job, const struct run_host *host, char **ret_text,
                        size_t *ret_bytes)
{
    FILE *to = open_memstream(ret_text, ret_bytes);
    char folder[4096];

    if (!to)
        return false;
    fprintf(to, "%d%c%d%c%d%c%d%c%d%c%.17g%c", host->slots, 0, host->first, 0, job->world, 0,
            job->bind, 0, job->tag, 0, job->grace, 0);
    fprintf(to, "%s%c%s%c%s%c", getcwd(folder, sizeof(folder)) ? folder : "/", 0, job->address, 0,
            job->secret, 0);
    write_variables(job, to);
    for (char **at = job->program; *at; at++)
        fprintf(to, "%s%c", *at, 0);
    return !fclose(to);
}

/* Into the pipe, whether anybody reads or not; the pipe is made large enough. */
static bool send_order(int to, const char *text, size_t bytes)
{
    char head[RUN_ORDER_HEAD + 1];

    if (bytes > RUN_ORDER_MAX) {
        fprintf(stderr, "rondo run: program, arguments and variables are longer than %d bytes\n",
                RUN_ORDER_MAX);
        return false;
    }
    snprintf(head, sizeof(head), RUN_ORDER_FORMAT, bytes);
    if (fcntl(to, F_SETPIPE_SZ, (int)bytes + RUN_ORDER_ROOM) >= 0 &&
        write(to, head, RUN_ORDER_HEAD) == RUN_ORDER_HEAD &&
        write(to, text, bytes) == (ssize_t)bytes)
        return true;
    fprintf(stderr, "rondo run: cannot write %zu bytes to a pipe: %s\n", bytes, strerror(errno));
    return false;
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* Writes a host as ssh wants it, without the brackets that an address has in the list, where a
 * number of ranks may follow. */
static void write_target(const struct run_host *host, char target[sizeof(host->name)])
{
    for (const char *from = host->name; *from; from++)
        if (*from != '[' && *from != ']')
            *target++ = *from;
    *target = '\0';
}

static int start_host(struct run_job *job, int number)
{
    static char command[2 * 4096 + 80], batch[] = "-oBatchMode=yes", ssh[] = "ssh";
    struct run_host *host = &job->hosts[number];
    char target[sizeof(host->name)];
    char *by_ssh[] = {ssh, batch, target, command, NULL};
    char *by_other[] = {job->ssh, target, command, NULL};
    int ends[2], status = RUN_EXIT_FAILED;
    char *order = NULL;
    size_t bytes = 0;

    write_target(host, target);
    remote_command("run --agent", command, sizeof(command));
    if (!write_order(job, host, &order, &bytes) || pipe2(ends, O_CLOEXEC)) {
        fprintf(stderr, "rondo run: no pipe for host %s: %s\n", host->name, strerror(errno));
        free(order);
        return RUN_EXIT_FAILED;
    }
    host->control = ends[1];
    job->ranks[number].program = job->ssh ? by_other : by_ssh;
    job->ranks[number].input = ends[0];
    if (send_order(ends[1], order, bytes))
        status = run_rank_start(job, number);
    close(ends[0]);
    free(order);
    return status;
}

int run_hosts_start(struct run_job *job)
{
    int status = 0;

    for (int i = 0; !status && i < job->size; i++)
        status = start_host(job, i);
    return status;
}

void run_hosts_done(struct run_job *job)
{
    for (int i = 0; job->hosts && i < job->host_count; i++)
        if (job->hosts[i].control >= 0)
            close(job->hosts[i].control);
    for (int i = 0; i < job->variable_count; i++)
        free(job->variables[i]);
    free(job->variables);
    free(job->hosts);
}
