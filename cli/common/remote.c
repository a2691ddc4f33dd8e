/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - see remote.h. */
#include "cli/common/remote.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void remote_command(const char *arguments, char *text, size_t bytes)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[length < 0 ? 0 : length] = '\0';
    if (*path && !path[strspn(path, plain)])
        snprintf(text, bytes, "sh -c 'test -x %s && exec %s %s; exec rondo %s'", path, path,
                 arguments, arguments);
    else
        snprintf(text, bytes, "rondo %s", arguments);
}
