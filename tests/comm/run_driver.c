/* SPDX-License-Identifier: BSD-3-Clause */
/* run_driver.c - `rondo run` alone, so that its tests need none of the other commands. An agent is
 * started as `rondo run`, with that word. */
#include "cli/commands.h"

#include <string.h>

int main(int argc, char **argv)
{
    int named = argc > 1 && strcmp(argv[1], "run") == 0;

    return command_run(argc - named, argv + named);
}
