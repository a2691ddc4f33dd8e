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
    "Say where the time of a job went that ran with RONDO_TRACE=FILE or RONDO_PROFILE=FILE, "
    "and draw it.\v"
    "Each process of the job has written FILE.RANK, also one that was killed. The files of several "
    "hosts are copied into one folder first; their clocks are compared by the calls that the ranks "
    "made together.";

enum output { CHROME, SVG, JSON, PROMETHEUS, OUTPUTS };

struct command {
    const char *file;
    const char *to[OUTPUTS]; /* "-" is stdout */
};

static void take_file(struct argp_state *state, void *input, char *text)
{
    struct command *command = input;

    if (command->file)
        argp_error(state, "one trace at a time, and there are '%s' and '%s'", command->file, text);
    command->file = text;
}

/* Returns how many outputs go there. */
static int uses_stdout(const struct command *command)
{
    int count = 0;

    for (int i = 0; i < OUTPUTS; i++)
        count += command->to[i] && !strcmp(command->to[i], "-");
    return count;
}

static void check(struct argp_state *state, void *input)
{
    const struct command *command = input;

    if (!command->file)
        argp_error(state, "which file? It is what RONDO_TRACE was set to");
    if (uses_stdout(command) > 1)
        argp_error(state, "only one of the files can be -");
}

static const struct argument table[] = {
    {"chrome", 0, "FILE", 0, ARGUMENT_SETS(struct command, to[CHROME]),
     "Write a time line that Perfetto and chrome://tracing open, - is stdout"},
    {"svg", 0, "FILE.svg", 0, ARGUMENT_SETS(struct command, to[SVG]),
     "Draw what ranks did when, and calls beside what the cost model expects; - is stdout"},
    {"json", 0, "FILE", 0, ARGUMENT_SETS(struct command, to[JSON]),
     "Write calls by what they are, of each rank: how many, how long, and predicted; - is stdout"},
    {"prometheus", 0, "FILE", 0, ARGUMENT_SETS(struct command, to[PROMETHEUS]),
     "Write the same as metrics for Prometheus; - is stdout"},
    {0}};

/* The report is for people, and leaves stdout to what is written there for programs. */
static bool write_all(const struct traced *traced, const struct command *command)
{
    static bool (*const writers[OUTPUTS])(const struct traced *,
                                          const char *) = {[CHROME] = traced_chrome,
                                                           [SVG] = traced_svg,
                                                           [JSON] = traced_json,
                                                           [PROMETHEUS] = traced_prometheus};
    bool good = true;

    if (!uses_stdout(command))
        traced_report(traced);
    for (int i = 0; i < OUTPUTS; i++)
        if (command->to[i])
            good = writers[i](traced, command->to[i]) && good;
    return good;
}

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
    good =
        traced_read(command.file, &traced) && traced_align(&traced) && write_all(&traced, &command);
    traced_done(&traced);
    return good ? 0 : 1;
}
