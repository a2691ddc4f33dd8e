/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the `rondo` command: picks the subcommand. */
#include "cli/commands.h"

#include "rondo/rondo.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", command_run, "start ranks of a program, here or by ssh"},
    {"bench", command_bench, "time collectives, check them, compare with other libraries"},
    {"explain", command_explain, "show the steps of a collective, as it really runs"},
    {"verify", command_verify, "prove that plans are right and free of deadlocks and races"},
    {"topo", command_topo, "show the machine as Rondo sees it"},
    {"train", command_train, "train a small language model on several ranks"},
    {"doctor", command_doctor, "say what works on this machine, what does not, and how to fix it"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *to)
{
    fprintf(to, "usage: rondo COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n`rondo COMMAND --help` says more.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("rondo %s\n", rondo_version());
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "rondo: there is no command '%s'\n", argv[1]);
    usage(stderr);
    return 2;
}
