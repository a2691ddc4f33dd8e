/* SPDX-License-Identifier: BSD-3-Clause */
/* own_path.c - by /proc, or where that is not mounted by the path that the program was started
 * with, which is right as long as nobody has changed the working directory. */
#include "cli/common/own_path.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool own_path(char *path, size_t room)
{
    ssize_t length = readlink("/proc/self/exe", path, room - 1);

    if (length < 0)
        length = snprintf(path, room, "%s", (const char *)getauxval(AT_EXECFN));
    if (length <= 0 || (size_t)length >= room - 1)
        length = 0;
    path[length] = '\0';
    return length > 0;
}

bool own_folder(char *path, size_t room)
{
    char *slash;

    if (!own_path(path, room))
        return false;
    slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    else
        snprintf(path, room, ".");
    return true;
}
