/* SPDX-License-Identifier: BSD-3-Clause */
/* format.c - the formats, and what they have room for. */
#include "cli/bench/format/format.h"

#include "cli/bench/steps.h"

static void print_nothing(const struct bench_sweep *sweep)
{
}

const struct bench_format bench_formats[BENCH_FORMATS] = {
    [BENCH_TABLE] = {bench_table_begin, bench_table_row, bench_table_end},
    [BENCH_NCCL_TESTS] = {bench_nccl_begin, print_nothing, bench_nccl_end},
    [BENCH_OSU] = {bench_osu_begin, bench_osu_row, print_nothing},
};

void bench_format_check(const struct argp_state *state, const struct bench_options *options)
{
    enum bench_collective collective = options->call.collective;

    if (options->format == BENCH_TABLE)
        return;
    if (options->watch)
        argp_error(state, "--watch redraws our table: leave --format out");
    if (options->library_count > 1)
        argp_error(state, "--format nccl and osu have room for one library: they go with none of "
                          "--vs, --base and --limit");
    if (options->format == BENCH_OSU && !bench_osu_has(collective))
        argp_error(state, "the OSU benchmarks have nothing like %s: leave --format osu out",
                   bench_collective_name(collective));
    if (options->format == BENCH_NCCL_TESTS && bench_has_steps(options))
        argp_error(state, "--format nccl goes with none of --overlap, --communicators and --trace");
}
