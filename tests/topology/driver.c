/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - `rondo topo` and `rondo doctor` alone, for tests that run them as programs. */
#include "cli/commands.h"

#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "topo"))
        return command_topo(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "doctor"))
        return command_doctor(argc - 1, argv + 1);
    return 99;
}
