/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - from the last start to the last end.
 *
 * The first rank that fails decides the exit status. The others then have the grace time to notice
 * and to say so themselves, which they do better than we could; after that SIGTERM, and SIGKILL
 * `kill_time` later. SIGINT and SIGTERM are passed on; the second one does not wait any more.
 */
#include "cli/run/job.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const double kill_time = 2;

struct watch {
    struct run_job *job;
    int signals;
    double terminate_at, kill_at; /* INFINITY: not planned */
    double timeout_at;
    int interrupts;
    struct pollfd *polls; /* the signals, the control, then two for each rank */
};

void run_signals(sigset_t *ret_set)
{
    static const int numbers[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

    sigemptyset(ret_set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(ret_set, numbers[i]);
}

void run_kill(const struct run_job *job, int number)
{
    for (int rank = 0; rank < job->size; rank++)
        if (job->ranks[rank].pid)
            kill(-job->ranks[rank].pid, number);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void report(const struct run_job *job, int rank, pid_t pid, int status)
{
    char who[280];

    if (job->hosts)
        snprintf(who, sizeof(who), "host %s", job->hosts[rank].name);
    else
        snprintf(who, sizeof(who), "rank %d", job->first + rank);
    if (WIFSIGNALED(status))
        fprintf(stderr, "rondo run: %s (pid %d) was killed by signal %d (%s)%s\n", who, (int)pid,
                WTERMSIG(status), strsignal(WTERMSIG(status)),
                WCOREDUMP(status) ? ", core dumped" : "");
    else
        fprintf(stderr, "rondo run: %s (pid %d) of %d ended with status %d\n", who, (int)pid,
                job->hosts ? job->size : job->world, WEXITSTATUS(status));
}

static void end_of_rank(struct watch *watch, int rank, int status)
{
    struct run_job *job = watch->job;
    pid_t pid = job->ranks[rank].pid;
    bool ours = isinf(watch->kill_at) == 0; /* we have begun to end them ourselves */

    job->ranks[rank].pid = 0;
    job->running--;
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return;
    if (!ours || !job->status)
        report(job, rank, pid, status);
    if (job->status)
        return;
    job->status = WIFSIGNALED(status) ? RUN_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    watch->terminate_at = fmin(watch->terminate_at, clock_seconds() + job->grace);
}

static void reap(struct watch *watch)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int rank = 0; rank < watch->job->size; rank++)
            if (watch->job->ranks[rank].pid == pid)
                end_of_rank(watch, rank, status);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static void pass_on(struct watch *watch, int number)
{
    bool last = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;

    if (last && ++watch->interrupts > 1) {
        fprintf(stderr, "rondo run: the second signal, killing %d %ss\n", watch->job->running,
                watch->job->what);
        watch->kill_at = 0;
        return;
    }
    run_kill(watch->job, number);
}

static void take_signals(struct watch *watch)
{
    struct signalfd_siginfo info;

    while (read(watch->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap(watch);
        } else if (info.ssi_signo == SIGTSTP) {
            run_kill(watch->job, SIGSTOP);
            kill(getpid(), SIGSTOP);
        } else {
            pass_on(watch, (int)info.ssi_signo);
        }
    }
}

/* ---- Times ----------------------------------------------------------------------------------- */

static void keep_time(struct watch *watch)
{
    struct run_job *job = watch->job;
    double now = clock_seconds();

    if (now >= watch->timeout_at) {
        fprintf(stderr, "rondo run: %d of %d %ss still run after %g s, ending them\n", job->running,
                job->size, job->what, job->timeout);
        watch->timeout_at = INFINITY;
        watch->terminate_at = now;
        job->status = job->status ? job->status : RUN_EXIT_TIMEOUT;
    }
    if (now >= watch->terminate_at) {
        if (job->running)
            fprintf(stderr, "rondo run: ending the %d %ss that still run\n", job->running,
                    job->what);
        watch->terminate_at = INFINITY;
        watch->kill_at = fmin(watch->kill_at, now + kill_time);
        run_kill(job, SIGTERM);
        run_kill(job, SIGCONT);
    }
    if (now >= watch->kill_at) {
        watch->kill_at = now + kill_time; /* again, should one be stuck in the kernel */
        run_kill(job, SIGKILL);
    }
}

static int milliseconds_left(const struct watch *watch)
{
    double next = fmin(fmin(watch->terminate_at, watch->kill_at), watch->timeout_at);
    double left = next - clock_seconds();

    if (isinf(next))
        return -1;
    return left <= 0 ? 0 : (int)fmin(ceil(left * 1e3), 1e9);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static nfds_t prepare(struct watch *watch)
{
    struct run_job *job = watch->job;
    nfds_t count = 2;

    watch->polls[0] = (struct pollfd){.fd = watch->signals, .events = POLLIN};
    watch->polls[1] = (struct pollfd){.fd = job->control, .events = POLLIN}; /* -1 is left out */
    for (int rank = 0; job->tag && !job->hosts && rank < job->size; rank++) {
        watch->polls[count++] = (struct pollfd){.fd = job->ranks[rank].out.from, .events = POLLIN};
        watch->polls[count++] = (struct pollfd){.fd = job->ranks[rank].err.from, .events = POLLIN};
    }
    return count;
}

static void move_output(struct watch *watch, nfds_t count)
{
    for (nfds_t i = 2; i < count; i++) {
        struct run_rank *rank = &watch->job->ranks[(i - 2) / 2];

        if (watch->polls[i].revents)
            run_tag_move(i % 2 ? &rank->err : &rank->out);
    }
}

/* Whoever started this host's ranks is gone, or wants them to end. */
static void look_at_control(struct watch *watch)
{
    struct run_job *job = watch->job;

    if (!watch->polls[1].revents || !run_agent_is_over(job))
        return;
    close(job->control);
    job->control = -1;
    job->status = job->status ? job->status : RUN_EXIT_FAILED;
    watch->terminate_at = clock_seconds();
}

void run_watch(struct run_job *job, int signals)
{
    struct watch watch = {job, signals, INFINITY, INFINITY, INFINITY, 0, NULL};

    watch.polls = calloc(2 + 2 * (size_t)job->size, sizeof(*watch.polls));
    if (!watch.polls) {
        fprintf(stderr, "rondo run: no memory to watch %d %ss\n", job->size, job->what);
        job->status = RUN_EXIT_FAILED;
        run_kill(job, SIGKILL);
        while (wait(NULL) > 0 || errno == EINTR)
            ;
        job->running = 0;
        return;
    }
    if (job->status) /* not all could be started */
        watch.terminate_at = clock_seconds();
    if (job->timeout > 0)
        watch.timeout_at = clock_seconds() + job->timeout;
    while (job->running > 0) {
        nfds_t count = prepare(&watch);

        if (poll(watch.polls, count, milliseconds_left(&watch)) > 0) {
            move_output(&watch, count);
            look_at_control(&watch);
            take_signals(&watch);
        }
        keep_time(&watch);
    }
    free(watch.polls);
}
