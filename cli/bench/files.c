/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - the records of a sweep, and its files: CSV, JSON that also tells of the machine. */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"

#include <math.h>
#include <string.h>
#include <time.h>

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

struct bench_record bench_record_of(const struct bench_sweep *sweep, int index, int library)
{
    const struct bench_call *call = &sweep->options->call;
    const struct bench_size *size = &sweep->sizes[index];
    const struct bench_result *result = &size->results[library];
    double unit = result->available ? 1 : NAN; /* of figures that there are */
    double ratio = bench_ratio_to(sweep, size, library ? library : BENCH_BEST_PEER);
    int best = ratio > 0 && !library ? bench_best_peer(sweep, size) : -1;

    return (struct bench_record){
        .library = sweep->groups[library].library,
        .collective = bench_collective_name(call->collective),
        .algorithm = bench_algorithm_of(sweep, library),
        .dtype = pattern_type_name(call->type),
        .op = bench_collective_reduces(call->collective) ? pattern_op_name(call->op) : "none",
        .memory = bench_memory_of(sweep, library),
        .ranks = sweep->groups[library].size,
        .root = bench_collective_is_rooted(call->collective) ? call->root : -1,
        .bytes = (long long)size->bytes,
        .count = (long long)size->count,
        .in_place = call->in_place,
        .available = result->available,
        .median_us = result->median * 1e6 * unit,
        .min_us = result->min * 1e6 * unit,
        .algbw_GBps = bench_algorithm_bandwidth(size, library) / 1e9 * unit,
        .busbw_GBps = bench_bus_bandwidth(sweep, size, library) / 1e9 * unit,
        .wrong = result->available && result->checked ? (long long)result->wrong : BENCH_UNKNOWN,
        .best_peer = best < 0 ? NULL : sweep->groups[best].library,
        .ratio = ratio > 0 ? ratio : NAN,
        .faster = ratio > 1   ? "yes"
                  : ratio > 0 ? "no"
                              : NULL,
    };
}

static void print_csv(const void *result, FILE *to)
{
    const struct bench_sweep *sweep = result;

    fprintf(to, "%s\n", BENCH_CSV_HEADER);
    for (int i = 0; i < sweep->size_count; i++)
        for (int library = 0; library < sweep->options->library_count; library++) {
            struct bench_record record = bench_record_of(sweep, i, library);

            if (!record.available)
                continue;
            bench_record_csv(&record, BENCH_CSV_HEADER, to);
            fprintf(to, "\n");
        }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *libraries(const struct bench_sweep *sweep)
{
    json_t *list = json_array();

    for (int i = 0; i < sweep->options->library_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", sweep->groups[i].library,
                                              "version", sweep->groups[i].version));
    return list;
}

static json_t *options_json(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;
    bool reduces = bench_collective_reduces(options->call.collective);

    return json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:i, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, "
        "s:f}",
        "collective", bench_collective_name(options->call.collective), "algorithm",
        bench_algorithm_of(sweep, 0), "ranks", sweep->groups[0].size, "dtype",
        pattern_type_name(options->call.type), "op",
        reduces ? pattern_op_name(options->call.op) : "none", "root", options->call.root, "memory",
        bench_memory_of(sweep, 0), "in_place", options->call.in_place, "cold", options->cold,
        "rewrite", options->rewrite, "graph", options->graph, "blocking", options->blocking,
        "threads", options->threads, "deterministic", options->deterministic, "iterations",
        options->iterations, "warmup", options->warmup, "rounds", options->rounds, "seconds",
        options->seconds);
}

static json_t *rows_json(const struct bench_sweep *sweep)
{
    json_t *rows = json_array();

    for (int i = 0; i < sweep->size_count; i++)
        for (int library = 0; library < sweep->options->library_count; library++) {
            struct bench_record record = bench_record_of(sweep, i, library);

            json_array_append_new(
                rows, bench_record_json(&record, record.available
                                                     ? "library,bytes,count,available,median_us,"
                                                       "min_us,algbw_GBps,busbw_GBps,wrong"
                                                     : "library,bytes,count,available"));
        }
    return rows;
}

static json_t *verdict_json(const struct bench_sweep *sweep, int library)
{
    struct bench_verdict verdict = bench_judge(sweep, library);

    if (!verdict.count)
        return json_null();
    return json_pack("{s:i, s:i, s:f, s:f, s:I, s:s}", "sizes", verdict.count, "faster",
                     verdict.faster, "geometric_mean", bench_verdict_mean(&verdict), "lowest",
                     verdict.lowest, "lowest_bytes", (json_int_t)verdict.lowest_bytes,
                     "lowest_library", sweep->groups[verdict.lowest_library].library);
}

/* Times of the others over that of the first: of each, and of the best at each size. */
static json_t *comparison_json(const struct bench_sweep *sweep)
{
    json_t *cells = json_array();
    json_t *all = json_object();

    for (int i = 0; i < sweep->size_count; i++) {
        struct bench_record record = bench_record_of(sweep, i, 0);
        json_t *cell;

        if (!record.best_peer)
            continue;
        cell = bench_record_json(&record, "bytes,best_peer,ratio");
        json_object_set_new(cell, "faster", json_boolean(record.ratio > 1));
        json_array_append_new(cells, cell);
    }
    for (int i = 1; i < sweep->options->library_count; i++)
        json_object_set_new(all, sweep->groups[i].library, verdict_json(sweep, i));
    json_object_set_new(all, "best_peer", verdict_json(sweep, BENCH_BEST_PEER));
    json_object_set_new(all, "sizes", cells);
    return all;
}

static json_t *limit_json(const struct bench_limit *limit)
{
    if (!limit->measured)
        return json_null();
    if (limit->devices)
        return json_pack("{s:i, s:f, s:f, s:I}", "devices", limit->devices, "launch_us",
                         limit->launch * 1e6, "copy_GBps", limit->copy / 1e9, "bytes",
                         (json_int_t)limit->bytes);
    return json_pack("{s:f, s:f, s:f, s:I}", "line_us", limit->line * 1e6, "copy_GBps",
                     limit->copy / 1e9, "all_reduce_GBps", limit->all_reduce / 1e9, "bytes",
                     (json_int_t)limit->bytes);
}

static json_t *make_json(const void *result)
{
    const struct bench_sweep *sweep = result;
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "date", date, "machine",
                     bench_machine_json(), "libraries", libraries(sweep), "options",
                     options_json(sweep), "rows", rows_json(sweep), "comparison",
                     comparison_json(sweep), "limit", limit_json(&sweep->limit));
}

int bench_sweep_write(const struct bench_sweep *sweep)
{
    bool flat = sweep->options->call.collective == BENCH_BARRIER || sweep->size_count == 0;
    const struct bench_writers writers = {"rondo bench", print_csv, make_json,
                                          flat ? NULL : bench_sweep_plot};

    return bench_write_files(&writers, sweep->options, sweep);
}
