/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.c - the workers of a library come to us, one connection per rank.
 *
 * A worker's process is known by a pidfd that is made from the credentials of its connection, so
 * that also the processes that mpirun started can be ended, and never somebody else's that got the
 * same number.
 */
#include "cli/bench/workers.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int bench_control_open(struct bench_control *ret_control, bool path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned long long random[2];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        goto fail;
    snprintf(ret_control->name, sizeof(ret_control->name), "%srondo-bench-control-%08x%016llx",
             path ? "/tmp/" : "", (unsigned)random[0], random[1]);
    memcpy(address.sun_path + !path, ret_control->name, strlen(ret_control->name));
    if (bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret_control->name))) ||
        listen(fd, 1024))
        goto fail;
    ret_control->socket = fd;
    return 0;
fail:
    fprintf(stderr, "rondo bench: cannot listen for its workers: %s\n", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

void bench_control_close(struct bench_control *control)
{
    close(control->socket);
    if (control->name[0] == '/')
        unlink(control->name);
}

/* The last lines of what the library's processes printed. */
void bench_show_output(const struct bench_group *group)
{
    char text[2048];
    off_t end = group->output >= 0 ? lseek(group->output, 0, SEEK_END) : 0;
    off_t start = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
    ssize_t length = end > 0 ? pread(group->output, text, sizeof(text) - 1, start) : 0;

    if (length <= 0)
        return;
    text[length] = 0;
    fprintf(stderr, "%s printed:\n%s%s", group->kind->name, text,
            text[length - 1] == '\n' ? "" : "\n");
}

static int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void accept_worker(struct bench_group *group, const struct bench_control *control)
{
    struct ucred who = {0};
    socklen_t length = sizeof(who);
    int fd = accept4(control->socket, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) || who.uid != geteuid() ||
        group->worker_count == group->size) {
        close(fd); /* a stranger */
        return;
    }
    group->workers[group->worker_count++] =
        (struct bench_worker){-1, fd, pidfd_of(who.pid), who.pid};
}

/* True if the group has room for who says hello like this. */
static bool fits(const struct bench_group *group, const struct bench_hello *hello)
{
    bool taken = false;

    for (int i = 0; i < group->worker_count; i++)
        taken |= group->workers[i].rank == hello->rank;
    return hello->size == group->size && hello->rank >= 0 && hello->rank < group->size && !taken;
}

/* -1: this worker failed, and has said why; else it is a rank now, or has said nothing yet. */
static int hear_hello(struct bench_group *group, struct bench_worker *worker)
{
    struct bench_hello hello;
    ssize_t got = recv(worker->socket, &hello, sizeof(hello), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != sizeof(hello)) {
        fprintf(stderr, "rondo bench: a rank of %s died before its library was open\n",
                group->kind->name);
        return -1;
    }
    hello.sentence[sizeof(hello.sentence) - 1] = 0;
    hello.version[sizeof(hello.version) - 1] = 0;
    if (hello.status != BENCH_OK) {
        fprintf(stderr, "rondo bench: rank %d of %s: %s\n", hello.rank, group->kind->name,
                hello.sentence);
        return -1;
    }
    if (!fits(group, &hello)) {
        fprintf(stderr, "rondo bench: %s started %d ranks where %d were asked for\n",
                group->kind->name, hello.size, group->size);
        return -1;
    }
    worker->rank = hello.rank;
    group->devices = hello.devices;
    group->device_bytes = hello.device_bytes;
    memcpy(group->version, hello.version, sizeof(group->version));
    return 0;
}

/* Whoever comes, and what those say who have come. How many are ranks now? -1: one failed. */
static int hear_all(struct bench_group *group, const struct bench_control *control, int patience)
{
    struct pollfd door = {control->socket, POLLIN, 0};
    int ranks = 0;

    for (int i = 0; i < group->size && poll(&door, 1, i ? 0 : patience) > 0; i++)
        accept_worker(group, control);
    for (int i = 0; i < group->worker_count; i++) {
        if (group->workers[i].rank < 0 && hear_hello(group, &group->workers[i]))
            return -1;
        ranks += group->workers[i].rank >= 0;
    }
    return ranks;
}

/* A child that ended although nobody has been told to may have said why, just before. */
static bool has_lost_one(struct bench_group *group, const struct bench_control *control)
{
    int lost = 0, status;

    if (bench_children_left(group) == group->child_count)
        return false;
    while (!group->children[lost].ended)
        lost++;
    status = group->children[lost].status;
    if (hear_all(group, control, 0) >= 0)
        fprintf(stderr, "rondo bench: a process of %s ended early, with %s %d\n", group->kind->name,
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return true;
}

static int by_rank(const void *a, const void *b)
{
    return ((const struct bench_worker *)a)->rank - ((const struct bench_worker *)b)->rank;
}

static int gather_ranks(struct bench_group *group, const struct bench_control *control)
{
    double deadline = clock_seconds() + PATIENCE_OPEN;
    int known;

    while ((known = hear_all(group, control, LOOK_WORKERS_MS)) < group->size) {
        if (known < 0 || bench_caught_signal() || has_lost_one(group, control))
            return -1;
        if (clock_seconds() > deadline) {
            fprintf(stderr, "rondo bench: %d of %d ranks of %s did not come up in %.0f s\n",
                    group->size - known, group->size, group->kind->name, PATIENCE_OPEN);
            return -1;
        }
    }
    qsort(group->workers, (size_t)group->size, sizeof(*group->workers), by_rank);
    return 0;
}

/* The loader only prints a warning where it cannot load a file: then this build ran twice. */
static int has_loaded(const struct bench_group *group)
{
    char maps[64], line[512];
    bool found = false;
    FILE *file;

    if (!group->preload)
        return 0;
    snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)group->workers[0].pid);
    file = fopen(maps, "re");
    while (file && !found && fgets(line, sizeof(line), file))
        found = strstr(line, group->preload) != NULL;
    if (file)
        fclose(file);
    if (found)
        return 0;
    fprintf(stderr, "rondo bench: the ranks did not load %s; --base wants a librondo.so.0\n",
            group->preload);
    return -1;
}

int bench_group_start(struct bench_group *group, const struct bench_control *control,
                      enum bench_library_id library, const struct bench_options *options)
{
    int failed;

    group->kind = &bench_kinds[library];
    group->output = -1;
    group->timeout = options->timeout < 0 ? DEFAULT_BENCH_TIMEOUT : options->timeout;
    group->workers = calloc((size_t)group->size, sizeof(*group->workers));
    group->children = calloc((size_t)group->size, sizeof(*group->children));
    if (!group->workers || !group->children) {
        fprintf(stderr, "rondo bench: out of memory\n");
        return -1;
    }
    failed = bench_start(group, control, options);
    if (!failed)
        failed = gather_ranks(group, control);
    if (!failed)
        failed = has_loaded(group);
    if (failed)
        bench_show_output(group);
    return failed;
}

int bench_with_groups(const struct bench_options *options, bool launched,
                      int (*work)(struct bench_group *groups, void *context), void *context)
{
    struct bench_group groups[BENCH_LIBRARIES] = {0};
    struct bench_control control;
    int started = 0;
    int failed = 0;

    if (bench_control_open(&control, options->enter != NULL))
        return -1;
    bench_catch_signals();
    while (!failed && started < options->library_count) {
        groups[started].size = options->ranks;
        groups[started].launched = launched;
        failed =
            bench_group_start(&groups[started], &control, options->libraries[started], options);
        started++;
    }
    if (!failed)
        failed = work(groups, context);
    if (failed)
        bench_say_signal("rondo bench");
    while (started-- > 0)
        bench_group_end(&groups[started], failed != 0);
    bench_control_close(&control);
    return failed;
}
