/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_workers.c - talk with the ranks of one library, notice who is gone or silent, leave nothing behind.
 *
 * A worker's process is known by a pidfd that is made from the credentials of its connection, so that also the
 * processes that mpirun started can be ended, and never somebody else's that got the same number.
 */
#include "cli/bench_workers.h"

#include "base/clock.h"

#include <errno.h>
#include <ftw.h>
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

#define OPEN_SECONDS   60.0 /* for a library to come up */
#define TELL_SECONDS   0.7  /* for the survivors to say what they noticed, once a rank is gone */
#define FINISH_SECONDS 5.0  /* for a library to close */

static volatile sig_atomic_t caught; /* the signal that asks us to end */

static void on_signal(int number)
{
    caught = number;
}

void bench_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: poll() is to return */

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int bench_control_open(struct bench_control *ret_control)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned long long random[2];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        goto fail;
    snprintf(ret_control->name, sizeof(ret_control->name), "rondo-bench-control-%016llx%016llx",
             random[0], random[1]);
    memcpy(address.sun_path + 1, ret_control->name, strlen(ret_control->name));
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
}

/* ---- Sentences -------------------------------------------------------------------------------------------------- */

/* The last lines of what the library's processes printed. */
static void show_output(const struct bench_group *group)
{
    char text[2048];
    off_t end = group->output >= 0 ? lseek(group->output, 0, SEEK_END) : 0;
    off_t start = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
    ssize_t length = end > 0 ? pread(group->output, text, sizeof(text) - 1, start) : 0;

    if (length <= 0)
        return;
    text[length] = 0;
    fprintf(stderr, "%s printed:\n%s%s", group->library, text,
            text[length - 1] == '\n' ? "" : "\n");
}

/* How a child of ours ended, if this is one: " (killed by signal 9)". */
static void describe_end(struct bench_group *group, pid_t pid, char *text, size_t room)
{
    double deadline =
        clock_seconds() + 0.1; /* the socket closes a little before the process is gone */
    int status = 0;
    int mine = 0;

    text[0] = 0;
    while (mine < group->child_count && group->children[mine] != pid)
        mine++;
    if (mine == group->child_count)
        return;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_seconds() > deadline)
            return;
        usleep(1000);
    }
    group->children[mine] = 0;
    if (WIFSIGNALED(status))
        snprintf(text, room, " (killed by signal %d, %s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, room, " (exit status %d)", WEXITSTATUS(status));
}

static void say_gone(struct bench_group *group, int rank, const char *when)
{
    struct bench_worker *worker = &group->workers[rank];
    char how[128];

    close(worker->socket);
    worker->socket = -1;
    describe_end(group, worker->pid, how, sizeof(how));
    fprintf(stderr, "rondo bench: rank %d of %s died%s %s\n", rank, group->library, how, when);
}

/* ---- Starting --------------------------------------------------------------------------------------------------- */

static int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Connections that have not said yet who they are. */
struct guests {
    struct bench_worker *list;
    int count;
};

static void accept_guest(const struct bench_control *control, struct guests *guests, int room)
{
    struct ucred who = {0};
    socklen_t length = sizeof(who);
    int fd = accept4(control->socket, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) || who.uid != geteuid() ||
        guests->count == room) {
        close(fd); /* a stranger */
        return;
    }
    guests->list[guests->count++] = (struct bench_worker){fd, pidfd_of(who.pid), who.pid};
}

/* 1: this guest is now a rank; 0: nothing yet; -1: it failed, and has said why. */
static int hear_hello(struct bench_group *group, struct bench_worker *guest)
{
    struct bench_hello hello;
    ssize_t got = recv(guest->socket, &hello, sizeof(hello), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != sizeof(hello)) {
        fprintf(stderr, "rondo bench: a rank of %s died before its library was open\n",
                group->library);
        return -1;
    }
    hello.sentence[sizeof(hello.sentence) - 1] = 0;
    hello.version[sizeof(hello.version) - 1] = 0;
    if (hello.status != BENCH_OK) {
        fprintf(stderr, "rondo bench: rank %d of %s: %s\n", hello.rank, group->library,
                hello.sentence);
        return -1;
    }
    if (hello.size != group->size || hello.rank < 0 || hello.rank >= group->size ||
        group->workers[hello.rank].socket >= 0) {
        fprintf(stderr, "rondo bench: %s started %d ranks where %d were asked for\n",
                group->library, hello.size, group->size);
        return -1;
    }
    group->workers[hello.rank] = *guest;
    memcpy(group->version, hello.version, sizeof(group->version));
    guest->socket = -1;
    guest->pidfd = -1;
    return 1;
}

/* Has a child ended although nobody has been told to? */
static bool child_ended(struct bench_group *group)
{
    for (int i = 0; i < group->child_count; i++) {
        int status;

        if (group->children[i] <= 0 || waitpid(group->children[i], &status, WNOHANG) <= 0)
            continue;
        group->children[i] = 0;
        fprintf(stderr, "rondo bench: a process of %s ended early, with %s %d\n", group->library,
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return true;
    }
    return false;
}

static int gather_ranks(struct bench_group *group, const struct bench_control *control,
                        struct guests *guests)
{
    double deadline = clock_seconds() + OPEN_SECONDS;
    int known = 0;

    while (known < group->size) {
        struct pollfd polls[2] = {{control->socket, POLLIN, 0}};

        poll(polls, 1, 10);
        if (polls[0].revents & POLLIN)
            accept_guest(control, guests, group->size);
        for (int i = 0; i < guests->count; i++) {
            int heard = guests->list[i].socket >= 0 ? hear_hello(group, &guests->list[i]) : 0;

            if (heard < 0)
                return -1;
            known += heard;
        }
        if (caught || (known < group->size && child_ended(group)))
            return -1;
        if (clock_seconds() > deadline) {
            fprintf(stderr, "rondo bench: %d of %d ranks of %s did not come up in %.0f s\n",
                    group->size - known, group->size, group->library, OPEN_SECONDS);
            return -1;
        }
    }
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

static void remove_meeting(struct bench_group *group)
{
    if (group->meeting[0])
        nftw(group->meeting, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    group->meeting[0] = 0;
}

/* Those who have not become ranks: after a failure. */
static void dismiss(struct guests *guests)
{
    for (int i = 0; i < guests->count; i++) {
        if (guests->list[i].pidfd >= 0) {
            syscall(SYS_pidfd_send_signal, guests->list[i].pidfd, SIGKILL, NULL, 0);
            close(guests->list[i].pidfd);
        }
        if (guests->list[i].socket >= 0)
            close(guests->list[i].socket);
    }
    free(guests->list);
}

int bench_group_start(struct bench_group *group, const struct bench_control *control,
                      const char *library, const struct bench_options *options)
{
    struct guests guests = {calloc((size_t)group->size, sizeof(*guests.list)), 0};
    int failed = -1;

    group->library = library;
    group->output = -1;
    group->timeout = options->timeout < 0 ? 60 : options->timeout;
    group->workers = calloc((size_t)group->size, sizeof(*group->workers));
    group->children = calloc((size_t)group->size, sizeof(*group->children));
    if (guests.list && group->workers && group->children) {
        for (int rank = 0; rank < group->size; rank++)
            group->workers[rank] = (struct bench_worker){-1, -1, 0};
        failed = bench_start(group, control, options);
        if (!failed)
            failed = gather_ranks(group, control, &guests);
        if (failed)
            show_output(group);
    } else {
        fprintf(stderr, "rondo bench: out of memory\n");
    }
    remove_meeting(group); /* the ranks have met */
    dismiss(&guests);
    return failed;
}

/* ---- Commanding ------------------------------------------------------------------------------------------------- */

/* What is known while the replies to a command come in. */
struct wait {
    int missing;
    bool failed;
    double deadline; /* 0: none */
    char when[128];
};

static void wait_init(struct wait *wait, const struct bench_group *group,
                      const struct bench_command *command)
{
    wait->missing = group->size;
    wait->failed = false;
    /* The library has its own limit, which should speak first. */
    wait->deadline = group->timeout > 0 ? clock_seconds() + 1.2 * group->timeout + 2 : 0;
    snprintf(wait->when, sizeof(wait->when), "during %s of %zu elements",
             bench_collective_name(command->call.collective), command->call.count);
}

/* From the first failure on there is a little time for the others to say what they see. */
static void wait_failed(struct wait *wait)
{
    if (!wait->failed)
        wait->deadline = clock_seconds() + TELL_SECONDS;
    wait->failed = true;
}

static void hear_reply(struct bench_group *group, int rank, struct bench_reply *reply,
                       struct wait *wait)
{
    ssize_t got = recv(group->workers[rank].socket, reply, sizeof(*reply), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    wait->missing--;
    if (got != sizeof(*reply)) {
        say_gone(group, rank, wait->when);
        reply->status = BENCH_FAILED;
    } else if (reply->status == BENCH_FAILED) {
        reply->sentence[sizeof(reply->sentence) - 1] = 0;
        fprintf(stderr, "rondo bench: rank %d of %s, %s\n", rank, group->library, reply->sentence);
    }
    if (reply->status == BENCH_FAILED)
        wait_failed(wait);
}

static void send_command(struct bench_group *group, const struct bench_command *command,
                         struct bench_reply *replies)
{
    for (int rank = 0; rank < group->size; rank++) {
        memset(&replies[rank], 0, sizeof(replies[rank]));
        replies[rank].status = UINT32_MAX; /* none yet */
        /* A rank that is gone is noticed when its reply is read. */
        (void)!send(group->workers[rank].socket, command, sizeof(*command), MSG_NOSIGNAL);
    }
}

/* Sleep until something comes from a rank that owes a reply. */
static void wait_for_news(const struct bench_group *group, const struct bench_reply *replies,
                          struct pollfd *polls, double deadline)
{
    double left = deadline > 0 ? deadline - clock_seconds() : 1;

    for (int rank = 0; rank < group->size; rank++) {
        bool owes = replies[rank].status == UINT32_MAX;

        polls[rank] = (struct pollfd){owes ? group->workers[rank].socket : -1, POLLIN, 0};
    }
    poll(polls, (nfds_t)group->size, left > 1 ? 1000 : (int)(left * 1000) + 1);
}

static void say_silent(const struct bench_group *group, const struct bench_reply *replies,
                       const struct wait *wait)
{
    for (int rank = 0; rank < group->size; rank++)
        if (replies[rank].status == UINT32_MAX)
            fprintf(stderr, "rondo bench: rank %d of %s has not come back %s\n", rank,
                    group->library, wait->when);
}

static enum bench_status collect(struct bench_group *group, struct bench_reply *replies,
                                 struct pollfd *polls, struct wait *wait)
{
    while (wait->missing > 0 && !caught) {
        if (wait->deadline > 0 && clock_seconds() > wait->deadline) {
            if (!wait->failed)
                say_silent(group, replies, wait);
            wait->failed = true;
            break;
        }
        wait_for_news(group, replies, polls, wait->deadline);
        for (int rank = 0; rank < group->size; rank++)
            if (polls[rank].revents)
                hear_reply(group, rank, &replies[rank], wait);
    }
    if (caught)
        fprintf(stderr, "rondo bench: ends because of signal %d\n", (int)caught);
    return wait->failed || caught ? BENCH_FAILED : (enum bench_status)replies[0].status;
}

enum bench_status bench_group_run(struct bench_group *group, const struct bench_command *command,
                                  struct bench_reply *ret_replies)
{
    struct pollfd *polls = calloc((size_t)group->size, sizeof(*polls));
    enum bench_status status;
    struct wait wait;

    if (!polls) {
        fprintf(stderr, "rondo bench: out of memory\n");
        return BENCH_FAILED;
    }
    wait_init(&wait, group, command);
    send_command(group, command, ret_replies);
    status = collect(group, ret_replies, polls, &wait);
    if (status == BENCH_FAILED && !caught)
        show_output(group);
    free(polls);
    return status;
}

/* ---- Ending ----------------------------------------------------------------------------------------------------- */

static void release_workers(struct bench_group *group, bool by_force)
{
    for (int rank = 0; group->workers && rank < group->size; rank++) {
        struct bench_worker *worker = &group->workers[rank];

        if (by_force && worker->pidfd >= 0 && !group->launched)
            syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
        if (worker->socket >= 0) /* end of file for the worker; it hangs up when it is done */
            shutdown(worker->socket, by_force ? SHUT_RDWR : SHUT_WR);
    }
}

static int children_left(struct bench_group *group)
{
    int left = 0;

    for (int i = 0; i < group->child_count; i++) {
        if (group->children[i] > 0 && waitpid(group->children[i], NULL, WNOHANG) != 0)
            group->children[i] = 0;
        left += group->children[i] > 0;
    }
    return left;
}

static void wait_for_children(struct bench_group *group, double seconds)
{
    double deadline = clock_seconds() + seconds;

    while (children_left(group) && clock_seconds() < deadline)
        usleep(2000);
}

static void signal_children(struct bench_group *group, int number)
{
    for (int i = 0; i < group->child_count; i++)
        if (group->children[i] > 0)
            kill(group->children[i], number);
}

void bench_group_end(struct bench_group *group, bool by_force)
{
    release_workers(group, by_force);
    if (!by_force)
        wait_for_children(group, FINISH_SECONDS);
    if (children_left(group)) {
        release_workers(group, true);
        signal_children(group, SIGTERM); /* mpirun tidies up */
        wait_for_children(group, 1);
        signal_children(group, SIGKILL);
        wait_for_children(group, 1);
    }
    for (int rank = 0; group->workers && rank < group->size; rank++) {
        if (group->workers[rank].socket >= 0)
            close(group->workers[rank].socket);
        if (group->workers[rank].pidfd >= 0)
            close(group->workers[rank].pidfd);
    }
    if (group->output >= 0)
        close(group->output);
    free(group->workers);
    free(group->children);
    memset(group, 0, sizeof(*group));
    group->output = -1;
}
