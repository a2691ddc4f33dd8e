/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - run a shell command and look at what it says. */
#ifndef RONDO_TESTS_COMM_COMMAND_H
#define RONDO_TESTS_COMM_COMMAND_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Returns the command's output, errors too if it redirects them; ret_status as from wait(). Valid
 * until the next call. */
static inline const char *command_output(const char *command, int *ret_status)
{
    static char text[65536];
    FILE *from = popen(command, "r");
    size_t count = from ? fread(text, 1, sizeof(text) - 1, from) : 0;

    text[count] = '\0';
    *ret_status = from ? pclose(from) : -1;
    return text;
}

/* Counts how often `part` is in `text`. */
static inline int command_count(const char *text, const char *part)
{
    int count = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        count++;
    return count;
}

#endif
