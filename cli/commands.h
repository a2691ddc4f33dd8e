/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.h - the subcommands of `rondo`. Each has main's contract: argv[0]
 * is its own name, the value is the exit status (0 good, 1 the work failed,
 * 2 wrong usage). Results go to stdout, progress and errors to stderr. */
#ifndef RONDO_CLI_COMMANDS_H
#define RONDO_CLI_COMMANDS_H

int command_run(int argc, char **argv);
int command_bench(int argc, char **argv);
/* These belong to `rondo bench`: argv[0] is "compare", "ddp", "kernels", "matrix". */
int command_bench_compare(int argc, char **argv);
int command_bench_ddp(int argc, char **argv);
int command_bench_kernels(int argc, char **argv);
int command_bench_matrix(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_simulate(int argc, char **argv);
int command_topo(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_train(int argc, char **argv);
int command_doctor(int argc, char **argv);

#endif
