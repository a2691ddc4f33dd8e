/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_main.c - `rondo bench` alone, so that its tests need no other subcommand. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
    return command_bench(argc, argv);
}
