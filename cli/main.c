/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the `rondo` command: picks the subcommand. */
#include "cli/commands.h"
#include "cli/common/completion.h"

#include "rondo/rondo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    bool takes_collective;
} commands[] = {
    {"run", command_run, "start ranks of a program, here or by ssh", false},
    {"bench", command_bench, "time collectives, check them, compare with other libraries", false},
    {"explain", command_explain, "show the steps of a collective, as it really runs", true},
    {"verify", command_verify, "prove that plans are right and free of deadlocks and races", true},
    {"simulate", command_simulate, "say what a collective would take on another machine", true},
    {"ps", command_ps, "say what ranks of running jobs wait for, and whom for", false},
    {"trace", command_trace, "say where the time of a traced job went, and draw it", false},
    {"topo", command_topo, "show the machine as Rondo sees it", false},
    {"train", command_train, "train a small language model on several ranks", false},
    {"doctor", command_doctor, "say what works on this machine, what does not, and how to fix it",
     false},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *to)
{
    fprintf(to, "usage: rondo COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n`rondo COMMAND --help` says more.\n");
}

/* Returns the exit status; `named` is the command, NULL: which commands are there? */
static int complete(char *named)
{
    static char option[] = "--complete";
    char *arguments[] = {named, option, NULL};

    for (int i = 0; i < COMMANDS; i++)
        if (!named)
            completion_word(commands[i].name, NULL, commands[i].summary);
        else if (!strcmp(named, commands[i].name)) {
            for (int word = 0; commands[i].takes_collective && word < RONDO_COLLECTIVES; word++)
                completion_word(rondo_collective_name((rondo_collective)word), NULL, "collective");
            return commands[i].run(2, arguments);
        }
    return named ? 2 : 0;
}

static int choose(int argc, char **argv)
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
    if (!strcmp(argv[1], "--complete"))
        return complete(argc > 2 ? argv[2] : NULL);
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "rondo: there is no command '%s'\n", argv[1]);
    usage(stderr);
    return 2;
}

/* Where a standard stream is closed, no file that is opened later gets its number. */
static void keep_standard_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY); /* so that writing there is an error */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Runs at exit, also after --help: output that was lost, on a full disk say, is an error. */
static void check_output(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return;
    fprintf(stderr, "rondo: standard output cannot be written: %s\n", strerror(errno));
    _exit(1);
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    signal(SIGCHLD, SIG_DFL); /* where it is ignored the kernel tells nobody how children ended */
    atexit(check_output);
    return choose(argc, argv);
}
