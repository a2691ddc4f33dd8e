/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * train.c - `rondo train`: becomes the program rondo-train, which has the options.
 *
 * It is a program of its own because it is what a user's would be: it sees nothing but the public
 * headers, and it needs BLAS, which the other commands do not.
 */
#include "cli/commands.h"
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
