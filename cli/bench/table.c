/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - the table that people read; columns as in nccl-tests, then a pair per other
 * library.
 */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"

#include <inttypes.h>
#include <string.h>

const char *bench_algorithm_of(const struct bench_sweep *sweep, int library)
{
    bool rondo = !strcmp(sweep->options->libraries[library], "rondo");

    return rondo && sweep->options->call.algorithm[0] ? sweep->options->call.algorithm : "auto";
}

const char *bench_memory_of(const struct bench_sweep *sweep, int library)
{
    const char *name = sweep->options->libraries[library];
    enum bench_memory memory = sweep->options->memory;

    if (memory == BENCH_MEMORY_CUDA || !strcmp(name, "rondo"))
        return bench_memory_name(memory);
    return bench_memory_name(strcmp(name, "limit") ? BENCH_MEMORY_HOST : BENCH_MEMORY_SHARED);
}

const char *bench_op_of(const struct bench_sweep *sweep)
{
    const struct bench_call *call = &sweep->options->call;

    return bench_collective_reduces(call->collective) ? pattern_op_name(call->op) : "none";
}

void bench_limit_print(const struct bench_limit *limit)
{
    if (limit->devices)
        printf(
            "\n# limit: an empty launch takes %.2f us, a device copies %.1f GB/s (vectors of %zu "
            "MiB; it reads and writes twice that); the least traffic of the busiest of %d "
            "device%s at that speed, no less than a launch",
            limit->launch * 1e6, limit->copy / 1e9, limit->bytes >> 20, limit->devices,
            limit->devices == 1 ? "" : "s");
    else if (limit->measured)
        printf(
            "\n# limit: a cache line crosses to all others in %.1f ns; of vectors of %zu MiB all "
            "ranks together copy %.1f GB/s, and sum %.1f GB/s without a copy",
            limit->line * 1e9, limit->bytes >> 20, limit->copy / 1e9, limit->all_reduce / 1e9);
}

static const char *how_called(const struct bench_options *options)
{
    if (options->memory != BENCH_MEMORY_CUDA)
        return "";
    return options->graph ? ", in graphs" : options->blocking ? ", blocking" : ", queued";
}

void bench_table_begin(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;

    printf("# %s, %d ranks (%s), memory %s, %s, algorithm %s%s%s%s%s\n",
           bench_collective_name(options->call.collective), sweep->groups[0].size,
           options->threads ? "threads" : "processes", bench_memory_of(sweep, 0),
           options->call.in_place ? "in place" : "out of place", bench_algorithm_of(sweep, 0),
           how_called(options), options->deterministic ? ", deterministic" : "",
           options->cold ? ", cold caches" : "", options->rewrite ? ", input rewritten" : "");
    printf("# times are those of the slowest rank: median, then minimum. Libraries:");
    for (int i = 0; i < options->library_count; i++)
        printf("%s %s", i ? "," : "", sweep->groups[i].version);
    bench_limit_print(&sweep->limit);
    printf("\n#\n#%11s %12s %11s %6s %5s %10s %10s %8s %8s %7s", "size", "count", "type", "redop",
           "root", "time", "min", "algbw", "busbw", "#wrong");
    for (int i = 1; i < options->library_count; i++)
        printf(" | %10s %10s %7s", sweep->groups[i].library,
               bench_is_limit(sweep, i) ? "% of limit" : "ratio", "#wrong");
    if (bench_peer_count(sweep))
        printf(" | %10s %8s %6s", "best peer", "ratio", "faster");
    printf("\n#%11s %12s %11s %6s %5s %10s %10s %8s %8s %7s", "(B)", "(elements)", "", "", "",
           "(us)", "(us)", "(GB/s)", "(GB/s)", "");
    for (int i = 1; i < options->library_count; i++)
        printf(" | %10s %10s %7s", "(us)", "", "");
    printf("\n");
}

/* Four figures, whatever the magnitude. */
static const char *figures(double value, char *text, size_t room)
{
    int places = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;

    snprintf(text, room, "%.*f", places, value);
    return text;
}

static const char *wrong_text(const struct bench_result *result, char *text, size_t room)
{
    if (!result->checked)
        return "N/A";
    snprintf(text, room, "%" PRIu64, result->wrong);
    return text;
}

static void print_first(const struct bench_sweep *sweep, const struct bench_size *size)
{
    const struct bench_result *result = &size->results[0];
    char text[5][32];

    if (!result->available) {
        printf(" %10s %10s %8s %8s %7s", "n/a", "n/a", "n/a", "n/a", "n/a");
        return;
    }
    printf(" %10s %10s %8s %8s %7s", figures(result->median * 1e6, text[0], sizeof(text[0])),
           figures(result->min * 1e6, text[1], sizeof(text[1])),
           figures(bench_algorithm_bandwidth(size, 0) / 1e9, text[2], sizeof(text[2])),
           figures(bench_bus_bandwidth(sweep, size, 0) / 1e9, text[3], sizeof(text[3])),
           wrong_text(result, text[4], sizeof(text[4])));
}

/* The fastest of the others, its time over ours, and whether we are faster. */
static void print_best(const struct bench_sweep *sweep, const struct bench_size *size)
{
    double ratio = bench_ratio_to(sweep, size, BENCH_BEST_PEER);
    char text[32];

    if (ratio <= 0)
        printf(" | %10s %8s %6s", "n/a", "n/a", "n/a");
    else
        printf(" | %10s %8s %6s", sweep->groups[bench_best_peer(sweep, size)].library,
               figures(ratio, text, sizeof(text)), ratio > 1 ? "yes" : "no");
}

static void print_peer(const struct bench_sweep *sweep, const struct bench_size *size, int library)
{
    const struct bench_result *result = &size->results[library];
    double ratio = bench_ratio(size, library) * (bench_is_limit(sweep, library) ? 100 : 1);
    char text[3][32];

    if (!result->available) {
        printf(" | %10s %10s %7s", "n/a", "n/a", "n/a");
        return;
    }
    printf(" | %10s %10s %7s", figures(result->median * 1e6, text[0], sizeof(text[0])),
           ratio > 0 ? figures(ratio, text[1], sizeof(text[1])) : "n/a",
           wrong_text(result, text[2], sizeof(text[2])));
}

void bench_table_row(const struct bench_sweep *sweep)
{
    const struct bench_size *size = &sweep->sizes[sweep->size_count];
    const struct bench_call *call = &sweep->options->call;

    printf("%12zu %12zu %11s %6s %5d", size->bytes, size->count, pattern_type_name(call->type),
           bench_op_of(sweep), bench_collective_is_rooted(call->collective) ? call->root : -1);
    print_first(sweep, size);
    for (int library = 1; library < sweep->options->library_count; library++)
        print_peer(sweep, size, library);
    if (bench_peer_count(sweep))
        print_best(sweep, size);
    printf("\n");
    fflush(stdout);
}

/* How many times as long as the first library this one takes: typical and best for it. */
static void print_comparison(const struct bench_sweep *sweep, int library)
{
    const char *first = sweep->groups[0].library;
    struct bench_verdict verdict = bench_judge(sweep, library);

    if (verdict.sizes && bench_is_limit(sweep, library))
        printf("# %% of limit, of %s: geometric mean %.1f, lowest %.1f at %zu bytes\n", first,
               100 * verdict.mean, 100 * verdict.lowest, verdict.lowest_size->bytes);
    else if (verdict.sizes)
        printf("# time of %s / time of %s: geometric mean %.2f, lowest %.2f at %zu bytes\n",
               sweep->groups[library].library, first, verdict.mean, verdict.lowest,
               verdict.lowest_size->bytes);
}

static void print_verdict(const struct bench_sweep *sweep)
{
    struct bench_verdict verdict = bench_judge(sweep, BENCH_BEST_PEER);

    if (verdict.sizes)
        printf("# geometric mean: %.2fx best peer; lowest %.2fx, of %s at %zu bytes; faster than "
               "the best peer at %d of %d sizes\n",
               verdict.mean, verdict.lowest, sweep->groups[verdict.lowest_library].library,
               verdict.lowest_size->bytes, verdict.faster, verdict.sizes);
}

void bench_table_end(const struct bench_sweep *sweep)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < sweep->size_count; i++)
        if (sweep->sizes[i].results[0].available) {
            sum += bench_bus_bandwidth(sweep, &sweep->sizes[i], 0);
            count++;
        }
    printf("#\n# wrong values: %" PRIu64 " %s\n", sweep->wrong, sweep->wrong ? "FAILED" : "OK");
    if (count && sweep->options->call.collective != BENCH_BARRIER)
        printf("# average bus bandwidth: %.3f GB/s\n", sum / count / 1e9);
    for (int library = 1; library < sweep->options->library_count; library++)
        print_comparison(sweep, library);
    print_verdict(sweep);
}
