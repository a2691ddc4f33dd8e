/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank.c - one rank, or the way to a host of ranks: fork, environment, place, group, exec.
 *
 * A rank leads a process group of its own, so that signals reach what it starts, too, and Ctrl-C
 * comes to it once, through us. The kernel kills it when we die. If exec fails, its errno comes
 * back through a pipe that exec would have closed.
 */
#include "cli/run/job.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct start {
    struct run_job *job;
    int rank;
    int out, err; /* the rank's ends of the pipes, -1: ours are inherited */
    int report;   /* where errno of a failed exec goes */
    pid_t parent;
};

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

static void set_environment(const struct run_job *job, int rank)
{
    char limits[32];

    if (job->elastic.most) {
        snprintf(limits, sizeof(limits), "%d:%d", job->elastic.least, job->elastic.most);
        setenv("RONDO_ELASTIC", limits, 1);
        setenv("RONDO_DOOR", job->elastic.door, 1);
    }
    if (job->ranks[rank].newcomer)
        setenv("RONDO_JOIN", "1", 1);
    else
        unsetenv("RONDO_JOIN");
    set_number("RONDO_RANK", job->first + rank);
    set_number("RONDO_SIZE", job->world);
    set_number("RONDO_LOCAL_RANK", rank);
    set_number("RONDO_LOCAL_SIZE", job->size);
    setenv("RONDO_ADDRESS", job->address, 1);
    setenv("RONDO_SECRET", job->secret, 1);
    setenv("RONDO_BIND", job->topology ? "core" : "none", 1);
}

static void set_files(const struct start *start)
{
    int input = start->job->ranks[start->rank].input;

    if (start->out >= 0)
        dup2(start->out, STDOUT_FILENO);
    if (start->err >= 0)
        dup2(start->err, STDERR_FILENO);
    if (input < 0)
        input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input > STDIN_FILENO)
        dup2(input, STDIN_FILENO);
}

static void set_place(const struct run_job *job, int rank)
{
    struct topology_place place;

    if (!job->topology)
        return;
    topology_place(job->topology, rank, job->room, &place);
    if (topology_bind(job->topology, &place))
        fprintf(stderr, "rondo run: rank %d is not bound: %s\n", job->first + rank,
                fail_sentence());
}

/* In the child; does not return. */
_Noreturn static void become(const struct start *start)
{
    struct run_job *job = start->job;
    ssize_t told;
    int number;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->parent) /* it died before the line above */
        _exit(RUN_EXIT_FAILED);
    if (!job->hosts)
        set_environment(job, start->rank);
    set_files(start);
    set_place(job, start->rank);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
    execvp(job->ranks[start->rank].program[0], job->ranks[start->rank].program);
    number = errno;
    told = write(start->report, &number, sizeof(number));
    _exit(told == sizeof(number) ? RUN_EXIT_NOT_FOUND : RUN_EXIT_FAILED);
}

static int say_why(const char *program, int number)
{
    fprintf(stderr, "rondo run: cannot start '%s': %s\n", program, strerror(number));
    if (number == ENOENT)
        return RUN_EXIT_NOT_FOUND;
    return number == EACCES || number == ENOEXEC ? RUN_EXIT_NOT_EXECUTABLE : RUN_EXIT_FAILED;
}

/* The parent's part: wait until exec has worked or failed. */
static int settle(struct run_job *job, int rank, pid_t pid, int report)
{
    int number = 0;
    ssize_t told;

    setpgid(pid, pid); /* the child does it, too: whoever is first */
    do
        told = read(report, &number, sizeof(number));
    while (told < 0 && errno == EINTR);
    if (told == sizeof(number)) {
        waitpid(pid, NULL, 0);
        return say_why(job->ranks[rank].program[0], number);
    }
    job->ranks[rank].pid = pid;
    job->running++;
    return 0;
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

int run_rank_start(struct run_job *job, int rank)
{
    struct start start = {job, rank, -1, -1, -1, getpid()};
    struct run_rank *me = &job->ranks[rank];
    int report[2] = {-1, -1};
    int status = RUN_EXIT_FAILED;
    pid_t pid = -1;
    bool ready = !pipe2(report, O_CLOEXEC);

    if (ready && job->tag && !job->hosts)
        ready = run_tag_init(&me->out, job->first + rank, STDOUT_FILENO, &start.out) &&
                run_tag_init(&me->err, job->first + rank, STDERR_FILENO, &start.err);
    start.report = report[1];
    if (ready) {
        pid = fork();
        if (pid == 0)
            become(&start);
    }
    if (pid < 0)
        fprintf(stderr, "rondo run: cannot start rank %d: %s\n", job->first + rank,
                strerror(errno));
    close_if_open(report[1]);
    close_if_open(start.out);
    close_if_open(start.err);
    if (pid > 0)
        status = settle(job, rank, pid, report[0]);
    close_if_open(report[0]);
    return status;
}
