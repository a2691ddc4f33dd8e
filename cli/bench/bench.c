/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - `rondo bench`: start the ranks of every library, sweep over sizes, report.
 *
 *     options (options.c)
 *        -> processes (start.c), a rank of a library each; bench/worker.c runs in them
 *        -> commands and replies (workers.c, bench/protocol.h)
 *        -> who is measured when (sweep.c)
 *        -> records (record.c): table, CSV and JSON, SVG (table.c, files.c, plot.c)
 *
 * `rondo bench kernels` needs no ranks: kernels.c. `rondo bench matrix` makes many sweeps
 * with the same ranks: matrix.c.
 *
 * Under a launcher and without -n, the processes of the launcher become the ranks; rank 0 has the
 * parent at its side.
 */
#include "cli/commands.h"

#include "cli/bench/judge.h"
#include "cli/bench/ddp.h"
#include "cli/bench/kernels.h"
#include "cli/bench/matrix.h"
#include "cli/bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables by which launchers tell a process its rank and the number of ranks. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"RONDO_RANK", "RONDO_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"RANK", "WORLD_SIZE"},
};

static bool find_launcher(int *ret_rank, int *ret_size)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const char *rank = getenv(launchers[i].rank);
        const char *size = getenv(launchers[i].size);

        if (!rank || !size)
            continue;
        *ret_rank = atoi(rank);
        *ret_size = atoi(size);
        return *ret_size > 0;
    }
    return false;
}

/*
 * Who are the ranks? 0: they are to be started here, or this is a launcher's rank 0. Else the exit
 * status.
 */
static int settle_ranks(struct bench_options *options, bool *ret_launched)
{
    int rank;
    int size;

    *ret_launched = false;
    if (options->ranks)
        return 0;
    if (!find_launcher(&rank, &size)) {
        fprintf(stderr, "rondo bench: say how many ranks to start (-n 4), or use a launcher\n");
        return 2;
    }
    if (strcmp(options->libraries[0], "rondo") || options->library_count > 1 || options->threads) {
        fprintf(stderr, "rondo bench: under a launcher there is only Rondo in processes; for "
                        "--vs, --limit and --threads give -n without a launcher\n");
        return 2;
    }
    if (options->call.root >= size) {
        fprintf(stderr, "rondo bench: --root %d is not among the %d ranks\n", options->call.root,
                size);
        return 2;
    }
    options->ranks = size;
    *ret_launched = true;
    if (rank == 0)
        return 0;
    bench_become_worker(options);
    return 1;
}

static int measure(const struct bench_options *options, struct bench_group *groups)
{
    struct bench_sweep sweep = {.options = options, .groups = groups};
    int last = options->library_count - 1;
    int failed = 0;

    if (bench_is_limit(&sweep, last))
        failed = bench_limit_measure(&groups[last], options, &sweep.limit);
    if (!failed) {
        bench_table_begin(&sweep);
        failed = bench_sweep_run(&sweep, bench_table_row);
    }
    if (!failed) {
        bench_table_end(&sweep);
        failed = bench_sweep_write(&sweep); /* the table is there, whatever a path is */
    }
    if (sweep.wrong)
        fprintf(stderr, "rondo bench: %llu wrong values\n", (unsigned long long)sweep.wrong);
    failed = failed || sweep.wrong;
    bench_sweep_done(&sweep);
    return failed;
}

/* What bench_with_groups() calls. */
static int measure_all(struct bench_group *groups, void *context)
{
    return measure(context, groups);
}

int command_bench(int argc, char **argv)
{
    struct bench_options options;
    bool launched;
    int status;

    if (argc > 1 && !strcmp(argv[1], "kernels"))
        return bench_kernels(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "ddp"))
        return bench_ddp(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "matrix"))
        return bench_matrix(argc - 1, argv + 1);
    bench_options_parse(argc, argv, &options);
    status = settle_ranks(&options, &launched);
    if (status)
        return status;
    return bench_with_groups(&options, launched, measure_all, &options) ? 1 : 0;
}
