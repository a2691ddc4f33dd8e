/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - `rondo trace FILE`: what a job did that ran with RONDO_TRACE=FILE. */
#include "cli/trace/trace.h"

#include "cli/commands.h"
#include "cli/common/argument.h"
#include "cli/common/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char summary[] =
    "Say where the time of a job went that ran with RONDO_TRACE=FILE, and draw it as a time line.\v"
    "Each process of the job has written FILE.RANK, also one that was killed. The files of several "
    "hosts are copied into one folder first; their clocks are compared by the calls that the ranks "
    "made together.";

struct command {
    const char *file, *chrome;
};

static void take_file(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    if (command->file)
        argp_error(state, "one trace at a time, and there are '%s' and '%s'", command->file, text);
    command->file = text;
}

static void check(struct argp_state *state, void *input)
{
    if (!((struct command *)input)->file)
        argp_error(state, "which file? It is what RONDO_TRACE was set to");
}

static const struct argument table[] = {
    {"chrome", 0, "FILE", 0, ARGUMENT_SETS(struct command, chrome),
     "Write a time line that Perfetto and chrome://tracing open, - to stdout"},
    {0}};

int command_trace(int argc, char **argv)
{
    struct command command = {0};
    struct traced traced;
    bool good;

    argument_parse(&(struct argument_command){.name = "rondo trace",
                                              .operands = "FILE",
                                              .doc = summary,
                                              .table = table,
                                              .operand = take_file,
                                              .finish = check},
                   argc, argv, &command);
    good = traced_read(command.file, &traced) && traced_align(&traced);
    if (good && (!command.chrome || strcmp(command.chrome, "-") != 0))
        traced_report(&traced);
    if (good && command.chrome)
        good = traced_chrome(&traced, command.chrome);
    traced_done(&traced);
    return good ? 0 : 1;
}
