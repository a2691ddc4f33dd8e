/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * osu.c - results in the format of the OSU micro-benchmarks, for scripts that read theirs.
 *
 * A size is that of what a rank sends to another: of the block, where the vector has one for each
 * rank. The first column is 10 wide, others are 20; with --overlap they are those of the OSU
 * benchmarks of calls that do not block.
 */
#include "cli/bench/format/format.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"

#include <math.h>

enum { FIRST = 10, OTHERS = 20, ALONE = 17 };

/* NULL: they have no such benchmark. */
static const char *title_of(enum bench_collective collective)
{
    static const char *const titles[BENCH_QUESTIONS] = {
        [BENCH_ALL_REDUCE] = "Allreduce Latency",
        [BENCH_REDUCE] = "Reduce Latency",
        [BENCH_BROADCAST] = "Broadcast Latency",
        [BENCH_ALL_GATHER] = "Allgather Latency",
        [BENCH_REDUCE_SCATTER] = "Reduce_scatter Latency",
        [BENCH_ALL_TO_ALL] = "All-to-All Personalized Exchange Latency",
        [BENCH_ALL_GATHER_V] = "Allgatherv Latency",
        [BENCH_REDUCE_SCATTER_V] = "Reduce_scatter Latency",
        [BENCH_ALL_TO_ALL_V] = "All-to-Allv Personalized Exchange Latency",
        [BENCH_GATHER] = "Gather Latency",
        [BENCH_SCATTER] = "Scatter Latency",
        [BENCH_BARRIER] = "Barrier Latency",
        [BENCH_LATENCY] = "Latency",
        [BENCH_BANDWIDTH] = "Bandwidth",
        [BENCH_BIDIRECTIONAL] = "Bi-Directional Bandwidth",
    };

    return titles[collective];
}

bool bench_osu_has(enum bench_collective collective)
{
    return title_of(collective) != NULL;
}

static const char *type_name(rondo_type type)
{
    static const char *const names[RONDO_TYPES] = {
        [RONDO_INT8] = "MPI_INT8_T",   [RONDO_UINT8] = "MPI_UINT8_T",
        [RONDO_INT16] = "MPI_INT16_T", [RONDO_UINT16] = "MPI_UINT16_T",
        [RONDO_INT32] = "MPI_INT32_T", [RONDO_UINT32] = "MPI_UINT32_T",
        [RONDO_INT64] = "MPI_INT64_T", [RONDO_UINT64] = "MPI_UINT64_T",
        [RONDO_FLOAT32] = "MPI_FLOAT", [RONDO_FLOAT64] = "MPI_DOUBLE",
    };

    return names[type] ? names[type] : pattern_type_name(type);
}

static bool is_bandwidth(enum bench_collective collective)
{
    return collective == BENCH_BANDWIDTH || collective == BENCH_BIDIRECTIONAL;
}

void bench_osu_begin(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;
    enum bench_collective collective = options->call.collective;
    bool has_size = bench_collective_has_size(collective);

    printf("\n# OSU MPI %s%s Test, by %s\n", options->overlap ? "Non-blocking " : "",
           title_of(collective), sweep->groups[0].version);
    if (has_size)
        printf("# Datatype: %s.\n%-*s", type_name(options->call.type), FIRST, "# Size");
    else
        printf("# ");
    printf("%*s", has_size ? OTHERS : 0,
           options->overlap           ? "Overall(us)"
           : is_bandwidth(collective) ? "Bandwidth (MB/s)"
                                      : "Avg Latency(us)");
    if (options->overlap)
        printf("%*s%*s%*s", OTHERS, "Compute(us)", OTHERS, "Pure Comm.(us)", OTHERS, "Overlap(%)");
    printf("\n");
}

static size_t size_of(const struct bench_sweep *sweep, const struct bench_size *size)
{
    switch (sweep->options->call.collective) {
    case BENCH_ALL_GATHER:
    case BENCH_ALL_TO_ALL:
    case BENCH_ALL_GATHER_V:
    case BENCH_ALL_TO_ALL_V:
    case BENCH_GATHER:
    case BENCH_SCATTER:
        return size->bytes / (size_t)sweep->groups[0].size;
    default:
        return size->bytes;
    }
}

void bench_osu_row(const struct bench_sweep *sweep)
{
    const struct bench_size *size = &sweep->sizes[sweep->size_count];
    const struct bench_result *result = &size->results[0];
    enum bench_collective collective = sweep->options->call.collective;
    bool has_size = bench_collective_has_size(collective);
    double us = result->median * 1e6;

    if (!result->available)
        return;
    if (has_size)
        printf("%-*zu", FIRST, size_of(sweep, size));
    printf("%*.2f", has_size ? OTHERS : ALONE,
           is_bandwidth(collective) ? bench_bus_bandwidth(sweep, size, 0) / 1e6 : us);
    if (sweep->options->overlap)
        printf("%*.2f%*.2f%*.2f", OTHERS, result->work * 1e6, OTHERS, result->pure * 1e6, OTHERS,
               100 * result->overlap);
    printf("\n");
    fflush(stdout);
}
