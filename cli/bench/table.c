/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - the table that people read; columns as in nccl-tests, then some for each other library.
 */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"
#include "cli/bench/steps.h"
#include "cli/common/output.h"

#include <inttypes.h>
#include <string.h>

enum { FOUR = BENCH_FOUR_FIGURES };

static const struct bench_column own_columns[] = {
    {"bytes", "size", "(B)", .width = 11},
    {"count", "count", "(elements)", .width = 12},
    {"dtype", "type", .width = 11, .unknown = "-"},
    {"op", "redop", .width = 6},
    {"root", "root", .width = 5},
    {"median_us", "time", "(us)", .width = 10, .places = FOUR},
    {"min_us", "min", "(us)", .width = 10, .places = FOUR},
    {"p90_us", "p90", "(us)", .width = 10, .places = FOUR},
    {"max_us", "max", "(us)", .width = 10, .places = FOUR},
    {"algbw_GBps", "algbw", "(GB/s)", .width = 8, .places = FOUR},
    {"busbw_GBps", "busbw", "(GB/s)", .width = 8, .places = FOUR},
    {"wrong", "#wrong", .width = 7, .unknown = "N/A"},
    {"ran", "algorithm", .width = 15, .unknown = "-"},
    {0},
};

static const struct bench_column peer_columns[] = {
    {"median_us", .unit = "(us)", .width = 10, .places = FOUR},
    {"ratio", "ratio", .width = 10, .places = FOUR},
    {"wrong", "#wrong", .width = 7, .unknown = "N/A"},
    {0},
};

static const struct bench_column limit_columns[] = {
    {"median_us", .unit = "(us)", .width = 10, .places = FOUR},
    {"ratio", "% of limit", .width = 10, .places = FOUR, .scale = 100},
    {"wrong", "#wrong", .width = 7, .unknown = "N/A"},
    {0},
};

static const struct bench_column best_columns[] = {
    {"best_peer", "best peer", .width = 10},
    {"ratio", "ratio", .width = 8, .places = FOUR},
    {"faster", "faster", .width = 6},
    {0},
};

/* These follow the others of each library: what only some questions have an answer to. */
static const struct bench_column rate_columns[] = {
    {"messages_per_s", "messages", "(1/s)", .width = 11}, {0}};

static const struct bench_column overlap_columns[] = {
    {"pure_us", "call", "(us)", .width = 10, .places = FOUR},
    {"compute_us", "computing", "(us)", .width = 10, .places = FOUR},
    {"overlap", "hidden", .width = 8, .places = 1, .scale = 100, .suffix = " %"},
    {0},
};

static const struct bench_column memory_columns[] = {
    {"rank_bytes", "rank", "(B)", .width = 10},
    {"communicator_bytes", "each comm", "(B)", .width = 10},
    {0},
};

static const struct bench_column *answer_columns(const struct bench_sweep *sweep)
{
    static const struct bench_column none[] = {{0}};
    enum bench_collective collective = sweep->options->call.collective;

    if (bench_collective_is_of_pairs(collective))
        return rate_columns;
    if (collective == BENCH_DUP || collective == BENCH_OPEN)
        return memory_columns;
    return sweep->options->overlap ? overlap_columns : none;
}

static const struct bench_column *columns_of(const struct bench_sweep *sweep, int library)
{
    return bench_is_limit(sweep, library) ? limit_columns : peer_columns;
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

static void print_headings(const struct bench_sweep *sweep)
{
    int libraries = sweep->options->library_count;

    printf("%s", output_colour(OUTPUT_BOLD));
    bench_columns_head(own_columns, "#", NULL, stdout);
    bench_columns_head(answer_columns(sweep), " ", NULL, stdout);
    for (int i = 1; i < libraries; i++) {
        bench_columns_head(columns_of(sweep, i), " | ", sweep->groups[i].kind->name, stdout);
        bench_columns_head(answer_columns(sweep), " ", NULL, stdout);
    }
    if (bench_peer_count(sweep))
        bench_columns_head(best_columns, " | ", NULL, stdout);
    printf("\n");
    bench_columns_units(own_columns, "#", stdout);
    bench_columns_units(answer_columns(sweep), " ", stdout);
    for (int i = 1; i < libraries; i++) {
        bench_columns_units(columns_of(sweep, i), " | ", stdout);
        bench_columns_units(answer_columns(sweep), " ", stdout);
    }
    printf("%s\n", output_colour(OUTPUT_PLAIN));
}

/* Says what a time is, where it is not that of one call after another on the same buffers. */
static void print_question(const struct bench_options *options)
{
    enum bench_collective collective = options->call.collective;

    if (options->trace)
        printf("# a time is that of all %d calls of %s%s\n", options->trace->calls,
               options->trace->name, options->overlap ? ", in the background" : "");
    else if (options->overlap)
        printf("# a time is that of a call in the background of computing, which takes as long as "
               "the slowest library's call\n");
    if (options->communicators > 1)
        printf("# calls on %d communicators at once; a time is that of all, divided by %d\n",
               options->communicators, options->communicators);
    if (options->buffers > 1)
        printf("# calls take turns on %d buffers\n", options->buffers);
    if (collective == BENCH_LATENCY)
        printf("# a time is half of a message there and one back\n");
    else if (bench_collective_is_of_pairs(collective))
        printf("# a time is that of a message, of %d in a row %s\n", BENCH_WINDOW,
               collective == BENCH_BIDIRECTIONAL ? "both ways" : "one way");
    if (collective == BENCH_DUP || collective == BENCH_OPEN)
        printf("# a time is that of opening and closing; memory is what the library takes in a "
               "rank, and for each further communicator that was used\n");
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
    print_question(options);
    printf("# times are those of the slowest rank: median, minimum, what 90 of 100 batches were no "
           "longer than, and maximum. Libraries:");
    for (int i = 0; i < options->library_count; i++)
        printf("%s %s", i ? "," : "", sweep->groups[i].version);
    bench_limit_print(&sweep->limit);
    printf("\n#\n");
    print_headings(sweep);
}

static bool any_unsteady(const struct bench_sweep *sweep, const struct bench_size *size)
{
    bool any = false;

    for (int i = 0; i < sweep->options->library_count; i++)
        any = any || size->results[i].noise.unsteady;
    return any;
}

static void print_row(const struct bench_sweep *sweep)
{
    struct bench_record own = bench_record_of(sweep, sweep->size_count, 0);
    bool wrong = own.wrong != BENCH_UNKNOWN && own.wrong > 0;

    printf("%s", wrong ? output_colour(OUTPUT_RED) : "");
    bench_columns_print(own_columns, " ", &own, stdout);
    printf("%s", wrong ? output_colour(OUTPUT_PLAIN) : "");
    bench_columns_print(answer_columns(sweep), " ", &own, stdout);
    for (int library = 1; library < sweep->options->library_count; library++) {
        struct bench_record record = bench_record_of(sweep, sweep->size_count, library);

        bench_columns_print(columns_of(sweep, library), " | ", &record, stdout);
        bench_columns_print(answer_columns(sweep), " ", &record, stdout);
    }
    if (bench_peer_count(sweep)) {
        printf("%s", output_colour(own.ratio > 1   ? OUTPUT_GREEN
                                   : own.ratio > 0 ? OUTPUT_RED
                                                   : OUTPUT_PLAIN));
        bench_columns_print(best_columns, " | ", &own, stdout);
        printf("%s", output_colour(OUTPUT_PLAIN));
    }
    printf("%s", any_unsteady(sweep, &sweep->sizes[sweep->size_count]) ? "  ~" : "");
}

#define NEW_LINE  "\r\033[K" /* in the place of the old one */
#define CUT_LINES "\033[?7l" /* a line that goes on below could not be replaced */
#define ALL_LINES "\033[?7h"

void bench_table_watch(const struct bench_sweep *sweep)
{
    printf(NEW_LINE CUT_LINES);
    print_row(sweep);
    printf(ALL_LINES);
    fflush(stdout);
}

void bench_table_row(const struct bench_sweep *sweep)
{
    printf("%s", sweep->watch ? NEW_LINE : "");
    print_row(sweep);
    printf("\n");
    fflush(stdout);
}

/* Prints what a reader has to know before the figures are quoted. */
static void print_warnings(const struct bench_sweep *sweep)
{
    int last = sweep->options->library_count - 1;
    int unsteady = 0, above = 0;

    for (int i = 0; i < sweep->size_count; i++) {
        unsteady += any_unsteady(sweep, &sweep->sizes[i]);
        above += bench_is_limit(sweep, last) && bench_ratio(&sweep->sizes[i], last) > 1;
    }
    if (unsteady)
        printf("# ~ marks %d of %d sizes at which times of a library were not steady; means leave "
               "such times out\n",
               unsteady, sweep->size_count);
    if (above)
        printf("# warning: above 100 %% of the limit at %d sizes: the limit was measured too low "
               "there; measure again with more --rounds before you quote them\n",
               above);
}

/* Prints how many times as long as the first library this one takes: typical and best for it. */
static void print_comparison(const struct bench_sweep *sweep, int library)
{
    const char *first = sweep->groups[0].kind->name;
    struct bench_verdict verdict = bench_judge(sweep, library);
    double mean = bench_verdict_mean(&verdict);

    if (verdict.count && bench_is_limit(sweep, library))
        printf("# %% of limit, of %s: geometric mean %.1f, lowest %.1f at %zu bytes\n", first,
               100 * mean, 100 * verdict.lowest, verdict.lowest_bytes);
    else if (verdict.count)
        printf("# time of %s / time of %s: geometric mean %.2f, lowest %.2f at %zu bytes\n",
               sweep->groups[library].kind->name, first, mean, verdict.lowest,
               verdict.lowest_bytes);
}

static void print_verdict(const struct bench_sweep *sweep)
{
    struct bench_verdict verdict = bench_judge(sweep, BENCH_BEST_PEER);

    if (verdict.count)
        printf("# geometric mean: %.2fx best peer; lowest %.2fx, of %s at %zu bytes; faster than "
               "the best peer at %d of %d sizes\n",
               bench_verdict_mean(&verdict), verdict.lowest,
               sweep->groups[verdict.lowest_library].kind->name, verdict.lowest_bytes,
               verdict.faster, verdict.count);
}

/* Either all sizes and libraries were checked, or none: the call decides. */
static void print_wrong(const struct bench_sweep *sweep)
{
    if (sweep->sizes[0].results[0].checked)
        printf("# wrong values: %" PRIu64 " %s%s%s\n", sweep->wrong,
               output_colour(sweep->wrong ? OUTPUT_RED : OUTPUT_GREEN),
               sweep->wrong ? "FAILED" : "OK", output_colour(OUTPUT_PLAIN));
    else
        printf("# wrong values: not checked\n");
}

void bench_table_end(const struct bench_sweep *sweep)
{
    double sum = 0;
    int count = 0;

    if (!sweep->complete)
        return;
    for (int i = 0; i < sweep->size_count; i++)
        if (sweep->sizes[i].results[0].available && !sweep->sizes[i].results[0].noise.unsteady) {
            sum += bench_bus_bandwidth(sweep, &sweep->sizes[i], 0);
            count++;
        }
    printf("#\n");
    print_warnings(sweep);
    print_wrong(sweep);
    if (count && bench_collective_has_size(sweep->options->call.collective))
        printf("# average bus bandwidth: %.3f GB/s\n", sum / count / 1e9);
    for (int library = 1; library < sweep->options->library_count; library++)
        print_comparison(sweep, library);
    print_verdict(sweep);
}
