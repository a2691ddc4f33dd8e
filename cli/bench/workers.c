/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers.c - command the ranks of one library, notice who is gone or silent, leave nothing
 * behind.
 *
 * From the first failure on there is a little time in which the other ranks can say what they see;
 * then all end.
 */
#include "cli/bench/workers.h"

#include "base/clock.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The last signal that asked us to end, and how many did. A handler writes them, so no order
 * matters. */
static atomic_int caught, caught_count;

static void on_signal(int number)
{
    atomic_store_explicit(&caught, number, memory_order_relaxed);
    atomic_fetch_add_explicit(&caught_count, 1, memory_order_relaxed);
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

void bench_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: poll() is to return */

    for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++)
        sigaction(ending_signals[i], &action, NULL);
}

int bench_caught_signal(void)
{
    return atomic_load_explicit(&caught, memory_order_relaxed);
}

int bench_caught_signals(void)
{
    return atomic_load_explicit(&caught_count, memory_order_relaxed);
}

/* In the child of bench_fork(). */
static void begin_child(void)
{
    sigset_t none;

    for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++)
        signal(ending_signals[i], SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

pid_t bench_fork(void)
{
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid == 0)
        begin_child();
    else
        sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int bench_say_signal(const char *command)
{
    int number = bench_caught_signal();

    if (number)
        fprintf(stderr, "%s: ends because of signal %d\n", command, number);
    return number;
}

/* ---- Sentences ------------------------------------------------------------------------------- */

int bench_children_left(struct bench_group *group)
{
    int left = 0;

    for (int i = 0; i < group->child_count; i++) {
        struct bench_child *child = &group->children[i];

        if (!child->ended)
            child->ended = waitpid(child->pid, &child->status, WNOHANG) != 0;
        left += !child->ended;
    }
    return left;
}

/* How a child of ours ended, if this is one: " (killed by signal 9)". */
static void describe_end(struct bench_group *group, pid_t pid, char *text, size_t room)
{
    double deadline = clock_seconds() + PATIENCE_END_STATUS;
    int mine = 0, status;

    text[0] = 0;
    while (mine < group->child_count && group->children[mine].pid != pid)
        mine++;
    if (mine == group->child_count)
        return;
    while (bench_children_left(group) && !group->children[mine].ended) {
        if (clock_seconds() > deadline)
            return;
        doze_for(DOZE_NEWS);
    }
    status = group->children[mine].status;
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
    fprintf(stderr, "rondo bench: rank %d of %s died%s %s\n", rank, group->kind->name, how, when);
}

/* ---- Commanding ------------------------------------------------------------------------------ */

/* State while the replies to a command come in. */
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
    wait->deadline = group->timeout > 0 ? clock_seconds() + 1.2 * group->timeout + PATIENCE_OWN : 0;
    snprintf(wait->when, sizeof(wait->when), "during %s of %zu elements",
             bench_collective_name(command->call.collective), command->call.count);
}

/* From the first failure on there is a little time for the others to say what they see. */
static void wait_failed(struct wait *wait)
{
    if (!wait->failed)
        wait->deadline = clock_seconds() + PATIENCE_SURVIVORS;
    wait->failed = true;
}

/* Prints a rank's sentence about its failure, unless another has said the same. */
static void say_failed(const struct bench_group *group, const struct bench_reply *replies, int rank)
{
    for (int other = 0; other < group->size; other++)
        if (other != rank && replies[other].status == BENCH_FAILED &&
            !strcmp(replies[other].sentence, replies[rank].sentence))
            return;
    fprintf(stderr, "rondo bench: rank %d of %s, %s\n", rank, group->kind->name,
            replies[rank].sentence);
}

static void hear_reply(struct bench_group *group, int rank, struct bench_reply *replies,
                       struct wait *wait)
{
    struct bench_reply *reply = &replies[rank];
    ssize_t got = recv(group->workers[rank].socket, reply, sizeof(*reply), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    wait->missing--;
    if (got != sizeof(*reply)) {
        say_gone(group, rank, wait->when);
        reply->status = BENCH_FAILED;
    } else if (reply->status == BENCH_FAILED) {
        reply->sentence[sizeof(reply->sentence) - 1] = 0;
        say_failed(group, replies, rank);
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
    poll(polls, (nfds_t)group->size, left > 1 ? LOOK_REPLIES_MS : (int)(left * 1000) + 1);
}

static void say_silent(const struct bench_group *group, const struct bench_reply *replies,
                       const struct wait *wait)
{
    char others[32] = "";
    int first = 0;

    while (first < group->size - 1 && replies[first].status != UINT32_MAX)
        first++;
    if (wait->missing > 1)
        snprintf(others, sizeof(others), " (and %d more)", wait->missing - 1);
    fprintf(stderr,
            "rondo bench: rank %d%s of %s has not come back %s; --timeout says how many seconds "
            "it may take\n",
            first, others, group->kind->name, wait->when);
}

static enum bench_status collect(struct bench_group *group, struct bench_reply *replies,
                                 struct pollfd *polls, struct wait *wait)
{
    while (wait->missing > 0 && !bench_caught_signal()) {
        if (wait->deadline > 0 && clock_seconds() > wait->deadline) {
            if (!wait->failed)
                say_silent(group, replies, wait);
            wait->failed = true;
            break;
        }
        wait_for_news(group, replies, polls, wait->deadline);
        for (int rank = 0; rank < group->size; rank++)
            if (polls[rank].revents)
                hear_reply(group, rank, replies, wait);
    }
    return wait->failed || bench_caught_signal() ? BENCH_FAILED
                                                 : (enum bench_status)replies[0].status;
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
    if (status == BENCH_FAILED && !bench_caught_signal())
        bench_show_output(group);
    free(polls);
    return status;
}

double bench_slowest(const struct bench_group *group, const struct bench_reply *replies, int batch)
{
    double slowest = 0;

    for (int rank = 0; rank < group->size; rank++)
        if (replies[rank].seconds[batch] > slowest)
            slowest = replies[rank].seconds[batch];
    return slowest;
}

double bench_fastest(const struct bench_group *group, const struct bench_reply *replies, int batch)
{
    double fastest = replies[0].seconds[batch];

    for (int rank = 1; rank < group->size; rank++)
        if (replies[rank].seconds[batch] < fastest)
            fastest = replies[rank].seconds[batch];
    return fastest;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void release_workers(struct bench_group *group, bool by_force)
{
    for (int i = 0; i < group->worker_count; i++) {
        struct bench_worker *worker = &group->workers[i];

        if (by_force && worker->pidfd >= 0 && !group->launched)
            syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
        if (worker->socket >= 0) /* end of file for the worker; it hangs up when it is done */
            shutdown(worker->socket, by_force ? SHUT_RDWR : SHUT_WR);
    }
}

static void wait_for_children(struct bench_group *group, double seconds)
{
    double deadline = clock_seconds() + seconds;

    while (bench_children_left(group) && clock_seconds() < deadline)
        doze_for(DOZE_WORKER);
}

static void signal_children(struct bench_group *group, int number)
{
    for (int i = 0; i < group->child_count; i++)
        if (!group->children[i].ended)
            kill(group->children[i].pid, number);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

void bench_group_end(struct bench_group *group, bool by_force)
{
    release_workers(group, by_force);
    if (!by_force)
        wait_for_children(group, PATIENCE_FINISH);
    if (bench_children_left(group)) {
        release_workers(group, true);
        signal_children(group, SIGTERM); /* mpirun tidies up */
        wait_for_children(group, PATIENCE_SIGNAL);
        signal_children(group, SIGKILL);
        wait_for_children(group, PATIENCE_SIGNAL);
    }
    for (int i = 0; i < group->worker_count; i++) {
        if (group->workers[i].socket >= 0)
            close(group->workers[i].socket);
        if (group->workers[i].pidfd >= 0)
            close(group->workers[i].pidfd);
    }
    if (group->folder[0])
        nftw(group->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (group->output >= 0)
        close(group->output);
    free(group->workers);
    free(group->children);
    memset(group, 0, sizeof(*group));
    group->output = -1;
}
