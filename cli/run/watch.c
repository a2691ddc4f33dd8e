/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - from the last start to the last end.
 *
 * The first rank that fails decides the exit status; with --elastic the first one that cannot be
 * spared. The others then have the grace time to notice
 * and to say so themselves, which they do better than we could; after that SIGTERM, and SIGKILL
 * PATIENCE_TERM later. SIGINT and SIGTERM are passed on; the second one does not wait any more.
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

enum { WATCH_FILES = 3 }; /* besides those of ranks */

struct watch {
    struct run_job *job;
    int signals;
    double terminate_at, kill_at; /* INFINITY: not planned */
    double timeout_at;
    int interrupts;
    struct pollfd *polls; /* the signals, the control, --join, then two for each rank */
};

/* Says whether whoever started this command wants it to go on at that signal, as nohup does. */
static bool is_ignored(int number)
{
    struct sigaction now;

    return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

/* An ignored signal that is blocked would come to a signalfd all the same. */
void run_signals(sigset_t *ret_set)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

    sigemptyset(ret_set);
    sigaddset(ret_set, SIGCHLD);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!is_ignored(numbers[i]))
            sigaddset(ret_set, numbers[i]);
}

void run_kill(const struct run_job *job, int number)
{
    for (int rank = 0; rank < job->size; rank++)
        if (job->ranks[rank].pid)
            kill(-job->ranks[rank].pid, number);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void say_what(const struct run_job *job, int rank, pid_t pid, int status, char *text,
                     size_t room)
{
    char who[280];

    if (job->hosts)
        snprintf(who, sizeof(who), "host %s", job->hosts[rank].name);
    else
        snprintf(who, sizeof(who), "rank %d", job->first + rank);
    if (WIFSIGNALED(status))
        snprintf(text, room, "%s (pid %d) was killed by signal %d (%s)%s", who, (int)pid,
                 WTERMSIG(status), strsignal(WTERMSIG(status)),
                 WCOREDUMP(status) ? ", core dumped" : "");
    else
        snprintf(text, room, "%s (pid %d) of %d ended with status %d%s", who, (int)pid,
                 job->hosts ? job->size : job->world, WEXITSTATUS(status),
                 WEXITSTATUS(status) == RUN_EXIT_NOT_FOUND
                     ? ": a library of the program (LD_LIBRARY_PATH, `ldd`), or a command that it "
                       "starts, was not found"
                     : "");
}

/* A signal has said so, or the time is over. */
static bool is_ending(const struct watch *watch)
{
    return watch->interrupts || !isinf(watch->terminate_at) || !isinf(watch->kill_at);
}

/* Says what has happened to a rank, and whether the job goes on without it. */
static bool goes_on(struct run_job *job, int rank, pid_t pid, int status, bool ending)
{
    char what[520];

    say_what(job, rank, pid, status, what, sizeof(what));
    if (job->elastic.most && !job->status && !ending)
        return run_elastic_loses(job, rank, what);
    fprintf(stderr, "rondo run: %s\n", what);
    return false;
}

static void end_of_rank(struct watch *watch, int rank, int status)
{
    struct run_job *job = watch->job;
    pid_t pid = job->ranks[rank].pid;
    bool ours = isinf(watch->kill_at) == 0; /* we have begun to end them ourselves */
    bool ending = is_ending(watch);

    job->ranks[rank].pid = 0;
    job->running--;
    job->ranks[rank].well = WIFEXITED(status) && !WEXITSTATUS(status);
    job->elastic.well += job->ranks[rank].well;
    if (job->ranks[rank].well)
        return;
    if ((!ours || !job->status) && goes_on(job, rank, pid, status, ending))
        return;
    /* Who was killed is why others gave up, though they may have ended before it was gone. */
    if (job->status && (ours || !WIFSIGNALED(status) || job->status > RUN_EXIT_SIGNAL))
        return;
    job->status = WIFSIGNALED(status) ? RUN_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    watch->terminate_at = fmin(watch->terminate_at, clock_seconds() + job->grace);
}

/* The processes that a failed rank has started would work on without it, and outlive the job:
 * nobody else ends them. Its group has the number of a process that is not reaped yet, so it can be
 * no other's. What the ssh to a host has started is the user's: a connection that others share. */
static void end_group(const struct run_job *job, const siginfo_t *ended)
{
    bool well = ended->si_code == CLD_EXITED && !ended->si_status;

    if (!job->hosts && !well)
        kill(-ended->si_pid, SIGKILL);
}

static void reap(struct watch *watch)
{
    struct run_job *job = watch->job;
    siginfo_t ended = {0};
    int status;

    while (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
        end_group(job, &ended);
        if (waitpid(ended.si_pid, &status, WNOHANG) != ended.si_pid)
            break;
        for (int rank = 0; rank < job->size; rank++)
            if (job->ranks[rank].pid == ended.si_pid)
                end_of_rank(watch, rank, status);
        ended.si_pid = 0;
    }
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
    if (last)
        run_tell_waits(watch->job);
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
        run_tell_waits(job);
        watch->terminate_at = INFINITY;
        watch->kill_at = fmin(watch->kill_at, now + PATIENCE_TERM);
        run_kill(job, SIGTERM);
        run_kill(job, SIGCONT);
    }
    if (now >= watch->kill_at) {
        watch->kill_at = now + PATIENCE_TERM; /* again, should one be stuck in the kernel */
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

static struct pollfd await_tag(const struct run_tag *tag)
{
    return tag->waits ? (struct pollfd){.fd = tag->to, .events = POLLOUT}
                      : (struct pollfd){.fd = tag->from, .events = POLLIN};
}

static nfds_t prepare(struct watch *watch)
{
    struct run_job *job = watch->job;
    nfds_t count = WATCH_FILES;

    watch->polls[0] = (struct pollfd){.fd = watch->signals, .events = POLLIN};
    watch->polls[1] = (struct pollfd){.fd = job->control, .events = POLLIN}; /* -1 is left out */
    watch->polls[2] = (struct pollfd){.fd = job->elastic.listener, .events = POLLIN};
    for (int rank = 0; job->tag && !job->hosts && rank < job->size; rank++) {
        watch->polls[count++] = await_tag(&job->ranks[rank].out);
        watch->polls[count++] = await_tag(&job->ranks[rank].err);
    }
    return count;
}

static void move_output(struct watch *watch, nfds_t count)
{
    for (nfds_t i = WATCH_FILES; i < count; i++) {
        struct run_rank *rank = &watch->job->ranks[(i - WATCH_FILES) / 2];

        if (watch->polls[i].revents)
            run_tag_move((i - WATCH_FILES) % 2 ? &rank->err : &rank->out);
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

    watch.polls = calloc(WATCH_FILES + 2 * (size_t)job->room, sizeof(*watch.polls));
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
            if (watch.polls[2].revents)
                run_elastic_serve(job, is_ending(&watch));
        }
        keep_time(&watch);
    }
    free(watch.polls);
}
