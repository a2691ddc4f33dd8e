/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - see remote.h. */
#include "cli/common/remote.h"
#include "cli/common/own_path.h"

#include <stdio.h>
#include <string.h>

void remote_command(const char *arguments, char *text, size_t bytes)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";
    char path[4096];

    own_path(path, sizeof(path));
    if (*path && !path[strspn(path, plain)])
        snprintf(text, bytes, "sh -c 'test -x %s && exec %s %s; exec rondo %s'", path, path,
                 arguments, arguments);
    else
        snprintf(text, bytes, "rondo %s", arguments);
}
