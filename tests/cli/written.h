/* SPDX-License-Identifier: BSD-3-Clause */
/* written.h - what a command of `rondo bench` writes to the file of its --csv or --json. */
#ifndef RONDO_TESTS_CLI_WRITTEN_H
#define RONDO_TESTS_CLI_WRITTEN_H

#include "cli/bench/record.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name of a fresh file, for one option at a time. */
static inline const char *written_path(void)
{
    static char path[] = "/tmp/test-bench-XXXXXX";

    snprintf(path, sizeof(path), "/tmp/test-bench-XXXXXX");
    close(mkstemp(path));
    return path;
}

/* Returns what is in the file, which goes away. free() it. */
static inline char *written_take(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;

    cr_assert(file && getdelim(&text, &room, 0, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

/* Commas of a line that are not quoted. */
static inline int written_commas(const char *line)
{
    bool quoted = false;
    int commas = 0;

    for (; *line && *line != '\n'; line++) {
        quoted ^= *line == '"';
        commas += *line == ',' && !quoted;
    }
    return commas;
}

/* Cuts the columns of the machine off each line of a CSV, whose head has to end with them; they
 * differ from place to place. */
static inline void written_cut_machine(char *text)
{
    static const char last[] = "," BENCH_MACHINE_VIEW "\n";
    size_t head = strcspn(text, "\n") + 1;
    char *to = text;

    cr_assert(head >= strlen(last) && !strncmp(text + head - strlen(last), last, strlen(last)));
    for (char *line = text, *next; *line; line = next) {
        int keep = written_commas(line) - written_commas("," BENCH_MACHINE_VIEW);
        bool quoted = false;

        next = strchr(line, '\n') + 1; /* before the line is written anew */
        for (char *at = line; *at != '\n' && keep >= 0; at++) {
            quoted ^= *at == '"';
            keep -= *at == ',' && !quoted;
            if (keep >= 0)
                *to++ = *at;
        }
        *to++ = '\n';
    }
    *to = 0;
}

#endif
