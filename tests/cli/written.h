/* SPDX-License-Identifier: BSD-3-Clause */
/* written.h - what a command of `rondo bench` writes to the file of its --csv or --json. */
#ifndef RONDO_TESTS_CLI_WRITTEN_H
#define RONDO_TESTS_CLI_WRITTEN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
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

#endif
