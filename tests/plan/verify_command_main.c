/* SPDX-License-Identifier: BSD-3-Clause */
/* verify_command_main.c - `rondo verify` and `rondo
 * explain` as a program of their own, for tests. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "verify"))
        return command_verify(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "explain"))
        return command_explain(argc - 1, argv + 1);
    fprintf(stderr, "verify or explain?\n");
    return 3;
}
