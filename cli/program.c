/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - seeks a program near the command that runs; `rondo train` becomes rondo-train. */
#include "cli/program.h"

#include "cli/commands.h"
#include "cli/common/own_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool program_find(const char *name, const char *folder, const char *only, char *path, size_t room)
{
    const char *const above[] = {"", "/../", "/../libexec/"}, *const below[] = {"", folder,
                                                                                "rondo"};
    bool anywhere = !only || !*only;
    char own[1024];

    own_folder(own, sizeof(own));
    for (int i = 0; i < (anywhere ? 3 : 1); i++) {
        snprintf(path, room, "%s%s%s/%s", anywhere ? own : only, above[i], below[i], name);
        if (!access(path, X_OK))
            return true;
    }
    return false;
}

int train_find(const char *command, char *path, size_t room)
{
    if (program_find("rondo-train", "train", NULL, path, room))
        return 0;
    fprintf(stderr,
            "%s: rondo-train is not installed; it needs BLAS: install OpenBLAS (Debian: apt "
            "install libopenblas-dev) and build Rondo again\n",
            command);
    return -1;
}

/* `rondo train` is a program of its own because it is what a user's would be: it sees nothing but
 * the public headers, and it needs BLAS, which the other commands do not. */
int command_train(int argc, char **argv)
{
    char path[1200];

    if (train_find("rondo train", path, sizeof(path)))
        return 1;
    setenv("OPENBLAS_NUM_THREADS", "1", 0); /* before the library is loaded */
    argv[0] = path;
    execv(path, argv);
    fprintf(stderr, "rondo train: cannot become %s: %s\n", path, strerror(errno));
    return 1;
}
