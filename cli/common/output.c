/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - where results go. */
#include "cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *results; /* what stdout was, if "-" was asked for */

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

/* Returns 0 if the file can be written; what is in it stays. */
static int try(const char *command, const char *path)
{
    int file;

    if (!path || is_stdout(path))
        return 0;
    file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0 && errno != ENXIO) { /* a pipe that nobody reads yet is good */
        fprintf(stderr, "%s: cannot write %s: %s; nothing was measured\n", command, path,
                strerror(errno));
        return 1;
    }
    if (file >= 0)
        close(file);
    return 0;
}

static int free_stdout(const char *command)
{
    int copy;

    fflush(stdout);
    copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    results = copy < 0 ? NULL : fdopen(copy, "w");
    if (!results || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        fprintf(stderr, "%s: cannot write to stdout: %s\n", command, strerror(errno));
        return 1;
    }
    return 0;
}

int output_begin(const char *command, const char *csv, const char *json, const char *plot)
{
    const char *name = plot ? strrchr(plot, '/') : NULL;
    const char *ending = plot ? strrchr(name ? name : plot, '.') : NULL;

    if (ending && strcasecmp(ending, ".svg")) {
        fprintf(stderr, "%s: --plot draws SVG only: name a FILE.svg, not '%s'\n", command, plot);
        return 2;
    }
    if (is_stdout(csv) && is_stdout(json)) {
        fprintf(stderr, "%s: stdout is for one of --csv and --json; give the other one a file\n",
                command);
        return 2;
    }
    if (try(command, csv) || try(command, json) || try(command, plot))
        return 1;
    return is_stdout(csv) || is_stdout(json) ? free_stdout(command) : 0;
}

FILE *output_open(const char *path)
{
    return is_stdout(path) ? results ? results : stdout : fopen(path, "we");
}

bool output_close(FILE *file)
{
    bool bad = ferror(file) != 0;

    return !(file == results || file == stdout ? fflush(file) : fclose(file)) && !bad;
}

bool output_again(const char *path)
{
    struct stat status;

    return !is_stdout(path) && (stat(path, &status) || S_ISREG(status.st_mode));
}

const char *output_colour(enum output_colour colour)
{
    static const char *const codes[OUTPUT_COLOURS] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m"};
    const char *never = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && !(never && *never) ? codes[colour] : "";
}
