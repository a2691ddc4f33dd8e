/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.c - records of other hosts: `rondo ps --raw` there writes what `rondo ps --hosts` here
 * reads.
 *
 *     head, and for each record: what the kernel knows of its process, and a copy of its file
 *
 * Clocks of hosts differ: each record comes with the time at which it was read, from which ages
 * follow.
 */
#include "cli/ps/ps.h"

#include "base/caller/times.h"
#include "cli/common/remote.h"

#include "comm/recorder/gather.h"
#include "comm/recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct raw_head {
    char magic[8];
    uint32_t record_bytes, process_bytes;
};
static const char magic[8] = {'r', 'o', 'n', 'd', 'o', 'p', 's', '2'};

/* ---- Bytes ----------------------------------------------------------------------------------- */

static bool write_one(void *context, const struct gathered *one)
{
    FILE *to = context;

    return fwrite(&one->process, sizeof(one->process), 1, to) == 1 &&
           fwrite(one->bytes, sizeof(one->bytes), 1, to) == 1;
}

int ps_write_raw(void)
{
    struct raw_head head = {.record_bytes = sizeof(struct recorder_page),
                            .process_bytes = sizeof(struct sighting_process)};

    memcpy(head.magic, magic, sizeof(magic));
    if (fwrite(&head, sizeof(head), 1, stdout) != 1)
        return 1;
    gather_each(LOOK_PS, write_one, stdout); /* no folder is no record */
    return fflush(stdout) || ferror(stdout);
}

bool ps_read(const void *bytes, size_t length, const char *where, struct sightings *sightings)
{
    const size_t each = sizeof(struct sighting_process) + sizeof(struct recorder_page);
    const char *at = bytes, *end = at + length;
    struct sighting_process process;
    struct raw_head head;

    if (length < sizeof(head))
        return false;
    memcpy(&head, at, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) != 0 ||
        head.record_bytes != sizeof(struct recorder_page) || head.process_bytes != sizeof(process))
        return false;
    for (at += sizeof(head); (size_t)(end - at) >= each; at += each) {
        memcpy(&process, at, sizeof(process));
        sightings_add(sightings, at + sizeof(process), sizeof(struct recorder_page), &process,
                      where);
    }
    return at == end;
}

/* ---- Programs -------------------------------------------------------------------------------- */

bool ps_start(char *const argv[], struct ps_output *ret_output)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int ends[2], error;
    pid_t pid;

    *ret_output = (struct ps_output){.from = -1, .pid = -1};
    if (pipe2(ends, O_CLOEXEC))
        return false;
    if (posix_spawn_file_actions_init(&actions)) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        errno = error;
        return false;
    }
    ret_output->from = ends[0];
    ret_output->pid = pid;
    return true;
}

/* Reads what is there; closes at the end. */
static void take(struct ps_output *output)
{
    enum { MOST = 1 << 28 };
    ssize_t done = -1;

    if (output->room - output->length < 65536 && output->room < MOST) {
        size_t room = output->room ? 2 * output->room : 1 << 18;
        char *larger = realloc(output->text, room);

        if (larger) {
            output->text = larger;
            output->room = room;
        }
    }
    if (output->room > output->length)
        done = read(output->from, output->text + output->length, output->room - output->length);
    if (done > 0) {
        output->length += (size_t)done;
        return;
    }
    close(output->from);
    output->from = -1;
}

/* Asks the system once which of them have something, and takes it; false: all are closed. */
static bool take_some(struct ps_output *outputs, int count, struct pollfd *polls, int milliseconds)
{
    bool open = false;

    for (int i = 0; i < count; i++) {
        polls[i] = (struct pollfd){.fd = outputs[i].from, .events = POLLIN};
        open |= outputs[i].from >= 0;
    }
    if (!open || poll(polls, (nfds_t)count, milliseconds) < 0)
        return false;
    for (int i = 0; i < count; i++)
        if (polls[i].revents)
            take(&outputs[i]);
    return true;
}

/* All are read at a time: one that is silent until the end costs the others nothing. */
void ps_collect(struct ps_output *outputs, int count, double seconds)
{
    struct pollfd *polls = calloc((size_t)count + 1, sizeof(*polls));
    uint64_t now = clock_nanoseconds(), until = now + (uint64_t)(1e9 * seconds);

    while (polls && now < until &&
           take_some(outputs, count, polls, (int)((until - now) / 1000000) + 1))
        now = clock_nanoseconds();
    free(polls);
    for (int i = 0; i < count; i++) {
        if (outputs[i].from >= 0) {
            kill(outputs[i].pid, SIGTERM);
            close(outputs[i].from);
            outputs[i].from = -1;
        }
        if (outputs[i].pid > 0)
            waitpid(outputs[i].pid, NULL, 0);
        outputs[i].pid = -1;
    }
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

static bool start_host(char *host, const char *ssh, struct ps_output *ret_output)
{
    static char command[2 * 4096 + 80], batch[] = "-oBatchMode=yes", plain[] = "ssh";
    char *by_ssh[] = {plain, batch, host, command, NULL};
    char *by_other[] = {(char *)(uintptr_t)ssh, host, command, NULL};

    remote_command("ps --raw", command, sizeof(command));
    if (*host != '-' && ps_start(ssh ? by_other : by_ssh, ret_output))
        return true;
    fprintf(stderr, "rondo ps: cannot ask host '%s': %s\n", host, strerror(errno));
    return false;
}

int ps_ask_hosts(const char *list, const char *ssh, double seconds, struct sightings *sightings)
{
    char *copy = strdup(list), *rest = copy, *host;
    size_t most = strlen(list) + 1;
    struct ps_output *outputs = calloc(most, sizeof(*outputs));
    char **names = calloc(most, sizeof(*names));
    int count = 0, answers = 0;

    while (copy && outputs && names && (host = strsep(&rest, ",")))
        if (*host && start_host(host, ssh, &outputs[count]))
            names[count++] = host;
    for (int i = 0; i < count; i++)
        if (outputs[i].from >= 0)
            fcntl(outputs[i].from, F_SETFL, 0);
    ps_collect(outputs, count, seconds);
    for (int i = 0; i < count; i++) {
        if (ps_read(outputs[i].text, outputs[i].length, names[i], sightings))
            answers++;
        else
            fprintf(stderr, "rondo ps: host %s gave no answer, or that of another version\n",
                    names[i]);
        free(outputs[i].text);
    }
    sightings_sort(sightings);
    free(outputs);
    free(names);
    free(copy);
    return answers || sightings->count ? 0 : 1; /* what the others say is shown */
}
