/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_run.c - a run of `rondo bench`, as a user starts it. */
#include "tests/cli/bench_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 40 };

static void split(char *line, char **arguments)
{
    int count = 1;
    char *rest = NULL;

    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (count < ARGUMENTS_MAX)
            arguments[count++] = word;
    arguments[count] = NULL;
}

struct run *run_begin(const char *workers, const char *line)
{
    struct run *run = calloc(1, sizeof(*run));
    char *arguments[ARGUMENTS_MAX + 1] = {(char *)TEST_BENCH};
    char *copy = strdup(line);

    split(copy, arguments);
    run->files[0] = tmpfile();
    run->files[1] = tmpfile();
    run->pid = fork();
    if (run->pid == 0) {
        setenv("RONDO_BENCH_DIR", workers, 1);
        dup2(fileno(run->files[0]), STDOUT_FILENO);
        dup2(fileno(run->files[1]), STDERR_FILENO);
        execv(TEST_BENCH, arguments);
        _exit(126);
    }
    free(copy);
    return run;
}

void run_read(FILE *file, char *text)
{
    ssize_t length = pread(fileno(file), text, RUN_TEXT_MAX - 1, 0);

    text[length > 0 ? length : 0] = 0;
}

bool run_await_row(struct run *run)
{
    return run_await(run, "\n  ");
}

static bool has_ended(const struct run *run)
{
    siginfo_t end = {.si_pid = 0};

    return waitid(P_PID, (id_t)run->pid, &end, WEXITED | WNOHANG | WNOWAIT) || end.si_pid;
}

bool run_await(struct run *run, const char *text)
{
    for (bool ended = false;; usleep(20000)) {
        run_read(run->files[0], run->out);
        if (strstr(run->out, text))
            return true;
        if (ended)
            return false;
        ended = has_ended(run);
    }
}

bool run_await_line(struct run *run, const char *path, const char *begin)
{
    for (bool ended = false; !lines_of(path, begin); usleep(20000)) {
        if (ended)
            return false;
        ended = has_ended(run);
    }
    return true;
}

void run_finish(struct run *run)
{
    int status = 0;

    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    run_read(run->files[0], run->out);
    run_read(run->files[1], run->err);
    fclose(run->files[0]);
    fclose(run->files[1]);
}

struct run *bench(const char *workers, const char *line)
{
    struct run *run = run_begin(workers, line);

    run_finish(run);
    return run;
}

int lines_of(const char *path, const char *begin)
{
    FILE *file = fopen(path, "re");
    char line[512];
    int count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += !strncmp(line, begin, strlen(begin));
    if (file)
        fclose(file);
    return count;
}
