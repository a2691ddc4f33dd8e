/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.h - what is measured besides one call after another: calls beside computing, on several
 * communicators at once, and those of a file.
 *
 * All three are a step to the workers (bench/protocol.h): a list of lines, which steps.c writes for
 * a library and a size.
 */
#ifndef RONDO_CLI_BENCH_STEPS_STEPS_H
#define RONDO_CLI_BENCH_STEPS_STEPS_H

#include "bench/protocol.h"
#include "cli/bench/options.h"

/*
 * The calls of a file: a line for each, as in
 *
 *     all_reduce 26214400 float32 sum    # bytes of the full vector, type, operation, root
 *     compute 1500                       # microseconds of computing between the calls
 */
struct bench_trace {
    char name[64];                            /* of the file, without folders */
    struct bench_line lines[BENCH_LINES_MAX]; /* their counts are bytes */
    int count, calls;
};

/* 0, or -1 with a sentence on stderr. */
int bench_trace_read(const char *path, struct bench_trace *ret_trace);
/* Bytes of the full vectors of all calls, of so many ranks. */
size_t bench_trace_bytes(const struct bench_trace *trace, int ranks);

/* True if the commands of these options are steps. */
bool bench_has_steps(const struct bench_options *options);
/* Ends the program if what is asked for does not go together. */
void bench_steps_check(const struct argp_state *state, const struct bench_options *options);
/* Writes the lines of the command's call, for so many ranks. */
void bench_steps_write(const struct bench_options *options, struct bench_command *command,
                       int ranks);
/* True if the right results of all calls of the command are exact. */
bool bench_steps_are_exact(const struct bench_command *command, int ranks);
/* All libraries compute equally long beside their calls; a trace that says how long is left. */
void bench_steps_set_work(const struct bench_options *options, struct bench_command *command,
                          double seconds);

#endif
