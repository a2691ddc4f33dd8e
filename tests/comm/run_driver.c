/* SPDX-License-Identifier: BSD-3-Clause */
/* run_driver.c - `rondo run` alone, so that its tests need none of the other commands. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
    return command_run(argc, argv);
}
