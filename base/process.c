/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include "base/caller/descriptor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool process_look(pid_t pid, struct process_look *ret_look)
{
    char path[64], text[1024];
    const char *open, *close;
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = descriptor_stream(path, "r");
    if (!file)
        return false;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    open = strchr(text, '(');
    close = strrchr(text, ')'); /* the name of the program may have anything in it */
    if (!open || !close)
        return false;
    snprintf(ret_look->name, sizeof(ret_look->name), "%.*s", (int)(close - open - 1), open + 1);
    /* After the name: state, parent, 17 numbers that do not matter here, start. */
    return sscanf(close + 1,
                  " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                  "%" SCNu64,
                  &ret_look->state, &ret_look->parent, &ret_look->started) == 3;
}

uint64_t process_started(pid_t pid, char *ret_state)
{
    struct process_look look;

    if (!process_look(pid, &look))
        return 0;
    if (ret_state)
        *ret_state = look.state;
    return look.state == 'Z' || look.state == 'X' ? 0 : look.started;
}
