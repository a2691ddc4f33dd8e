/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - seeks a program near the command that runs. */
#include "cli/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, const char *folder, const char *only, char *path, size_t room)
{
    const char *const above[] = {"", "/../", "/../libexec/"}, *const below[] = {"", folder,
                                                                                "rondo"};
    bool anywhere = !only || !*only;
    char own[1024];
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

    own[length > 0 ? length : 0] = 0;
    if (strrchr(own, '/'))
        *strrchr(own, '/') = 0;
    for (int i = 0; i < (anywhere ? 3 : 1); i++) {
        snprintf(path, room, "%s%s%s/%s", anywhere ? own : only, above[i], below[i], name);
        if (!access(path, X_OK))
            return true;
    }
    return false;
}
