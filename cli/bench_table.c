/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_table.c - the table that people read; columns as in nccl-tests, then a pair per other
 * library.
 */
#include "cli/bench_report.h"

#include "bench/pattern.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *bench_algorithm_of(const struct bench_sweep *sweep, int library)
{
    bool rondo = !strcmp(sweep->options->libraries[library], "rondo");

    return rondo && sweep->options->call.algorithm[0] ? sweep->options->call.algorithm : "auto";
}

const char *bench_memory_of(const struct bench_sweep *sweep, int library)
{
    const char *name = sweep->options->libraries[library];
    bool rondo = !strcmp(name, "rondo");

    return (rondo && sweep->options->shared) || !strcmp(name, "limit") ? "shared" : "host";
}

static bool is_limit(const struct bench_sweep *sweep, int library)
{
    return !strcmp(sweep->options->libraries[library], "limit");
}

const char *bench_op_of(const struct bench_sweep *sweep)
{
    const struct bench_call *call = &sweep->options->call;

    return bench_collective_reduces(call->collective) ? pattern_op_name(call->op) : "none";
}

void bench_table_begin(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;

    printf("# %s, %d ranks (%s), memory %s, %s, algorithm %s%s%s%s\n",
           bench_collective_name(options->call.collective), sweep->groups[0].size,
           options->threads ? "threads" : "processes", bench_memory_of(sweep, 0),
           options->call.in_place ? "in place" : "out of place", bench_algorithm_of(sweep, 0),
           options->deterministic ? ", deterministic" : "", options->cold ? ", cold caches" : "",
           options->rewrite ? ", input rewritten" : "");
    printf("# times are those of the slowest rank: median, then minimum. Libraries:");
    for (int i = 0; i < options->library_count; i++)
        printf("%s %s", i ? "," : "", sweep->groups[i].version);
    printf("\n#\n#%11s %12s %11s %6s %5s %10s %10s %8s %8s %7s", "size", "count", "type", "redop",
           "root", "time", "min", "algbw", "busbw", "#wrong");
    for (int i = 1; i < options->library_count; i++)
        printf(" | %10s %10s %7s", sweep->groups[i].library,
               is_limit(sweep, i) ? "% of limit" : "ratio", "#wrong");
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

static void print_peer(const struct bench_sweep *sweep, const struct bench_size *size, int library)
{
    const struct bench_result *result = &size->results[library];
    double ratio = bench_ratio(size, library) * (is_limit(sweep, library) ? 100 : 1);
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
    printf("\n");
    fflush(stdout);
}

/* How many times as long as the first library this one takes: typical and best for it. */
static void print_comparison(const struct bench_sweep *sweep, int library)
{
    const struct bench_size *closest = NULL;
    double sum = 0;
    int count = 0;

    for (int i = 0; i < sweep->size_count; i++) {
        double ratio = bench_ratio(&sweep->sizes[i], library);

        if (ratio <= 0)
            continue;
        sum += log(ratio);
        count++;
        if (!closest || ratio < bench_ratio(closest, library))
            closest = &sweep->sizes[i];
    }
    if (closest && is_limit(sweep, library))
        printf("# %% of limit, of %s: geometric mean %.1f, lowest %.1f at %zu bytes\n",
               sweep->groups[0].library, 100 * exp(sum / count),
               100 * bench_ratio(closest, library), closest->bytes);
    else if (closest)
        printf("# time of %s / time of %s: geometric mean %.2f, lowest %.2f at %zu bytes\n",
               sweep->groups[library].library, sweep->groups[0].library, exp(sum / count),
               bench_ratio(closest, library), closest->bytes);
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
}
