/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_run.h - a run of `rondo bench`, as a user starts it.
 *
 * The build names: TEST_BENCH, the program; TEST_WORKERS, the folder of its workers; TEST_FAULTY,
 * that of the worker in test_bench_fault.c; TEST_PEERS, the libraries to compare with.
 */
#ifndef RONDO_TESTS_CLI_BENCH_RUN_H
#define RONDO_TESTS_CLI_BENCH_RUN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { RUN_TEXT_MAX = 1 << 16 };

/* The program's output goes to files that have no name. free() it. */
struct run {
    pid_t pid;
    FILE *files[2]; /* stdout, stderr */
    int status;     /* exit status; negative: a signal's number */
    char out[RUN_TEXT_MAX], err[RUN_TEXT_MAX];
};

/* Starts the program with the words of a line, and with workers of a folder. */
struct run *run_begin(const char *workers, const char *line);
/* Reads what it has printed so far. */
void run_read(FILE *file, char *text);
/* Returns when it has printed this; false: it ended before. */
bool run_await(struct run *run, const char *text);
/* Returns when its table has a line of results, which begin with blanks; false: it ended before. */
bool run_await_row(struct run *run);
/* Returns when a file has a line that begins so; false: the program ended before. */
bool run_await_line(struct run *run, const char *path, const char *begin);
void run_finish(struct run *run);
/* From begin to finish. */
struct run *bench(const char *workers, const char *line);

/* Lines of a file that begin so. */
int lines_of(const char *path, const char *begin);

#endif
