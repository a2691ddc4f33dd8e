/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include "base/caller/descriptor.h"

#include <stdio.h>
#include <string.h>

uint64_t process_started(pid_t pid, char *ret_state)
{
    char path[64], text[512];
    unsigned long long started = 0;
    const char *at;
    FILE *file;
    size_t length;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = descriptor_stream(path, "r");
    if (!file)
        return 0;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    at = strrchr(text, ')'); /* the name of the program may have anything in it */
    if (!at || at[1] != ' ' || !at[2])
        return 0;
    if (ret_state)
        *ret_state = at[2];
    if (at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = 3; field < 22 && at; field++)
        at = strchr(at + 2, ' ');
    return at && sscanf(at, "%llu", &started) == 1 ? started : 0;
}
