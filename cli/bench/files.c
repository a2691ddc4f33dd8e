/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.c - results for other programs: CSV with the fixed columns, and JSON that also tells
 * of the machine.
 */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"
#include "cli/json_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void print_line(const struct bench_sweep *sweep, int index, int library, FILE *to)
{
    const struct bench_size *size = &sweep->sizes[index];
    const struct bench_result *result = &size->results[library];
    const struct bench_call *call = &sweep->options->call;

    fprintf(to, "%s,%s,%s,%d,%zu,%s,%s,%s,%d,%.4f,%.4f,%.6f,%.6f,", sweep->groups[library].library,
            bench_collective_name(call->collective), bench_algorithm_of(sweep, library),
            sweep->groups[library].size, size->bytes, pattern_type_name(call->type),
            bench_op_of(sweep), bench_memory_of(sweep, library), call->in_place,
            result->median * 1e6, result->min * 1e6, bench_algorithm_bandwidth(size, library) / 1e9,
            bench_bus_bandwidth(sweep, size, library) / 1e9);
    if (result->checked) /* else the column stays empty */
        fprintf(to, "%" PRIu64, result->wrong);
    fprintf(to, "\n");
}

void bench_csv_print(const struct bench_sweep *sweep, FILE *to)
{
    fprintf(to, "%s\n", BENCH_CSV_HEADER);
    for (int i = 0; i < sweep->size_count; i++)
        for (int library = 0; library < sweep->options->library_count; library++)
            if (sweep->sizes[i].results[library].available)
                print_line(sweep, i, library, to);
}

static int cannot_write(const char *path)
{
    fprintf(stderr, "rondo bench: cannot write %s: %s\n", path, strerror(errno));
    return -1;
}

int bench_csv_write(const struct bench_sweep *sweep, const char *path)
{
    FILE *file = fopen(path, "we");
    bool bad;

    if (!file)
        return cannot_write(path);
    bench_csv_print(sweep, file);
    bad = ferror(file) != 0;
    return fclose(file) || bad ? cannot_write(path) : 0;
}

static void read_processor(char *model, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(model, room, "unknown");
    while (file && fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) || !value)
            continue;
        value[strcspn(value, "\n")] = 0;
        snprintf(model, room, "%s", value + 2);
        break;
    }
    if (file)
        fclose(file);
}

json_t *bench_machine_json(void)
{
    struct utsname system;
    char model[256];

    read_processor(model, sizeof(model));
    uname(&system);
    return json_pack("{s:s, s:I, s:s, s:s, s:s}", "processor", model, "processors",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "architecture", system.machine,
                     "system", system.sysname, "kernel", system.release);
}

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

    return json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:i, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, "
        "s:f}",
        "collective", bench_collective_name(options->call.collective), "algorithm",
        bench_algorithm_of(sweep, 0), "ranks", sweep->groups[0].size, "dtype",
        pattern_type_name(options->call.type), "op", bench_op_of(sweep), "root", options->call.root,
        "memory", bench_memory_of(sweep, 0), "in_place", options->call.in_place, "cold",
        options->cold, "rewrite", options->rewrite, "graph", options->graph, "blocking",
        options->blocking, "threads", options->threads, "deterministic", options->deterministic,
        "iterations", options->iterations, "warmup", options->warmup, "rounds", options->rounds,
        "seconds", options->seconds);
}

static json_t *row(const struct bench_sweep *sweep, int index, int library)
{
    const struct bench_size *size = &sweep->sizes[index];
    const struct bench_result *result = &size->results[library];
    json_t *object = json_pack("{s:s, s:I, s:I, s:b}", "library", sweep->groups[library].library,
                               "bytes", (json_int_t)size->bytes, "count", (json_int_t)size->count,
                               "available", result->available);

    if (!result->available)
        return object;
    json_object_set_new(object, "median_us", json_real(result->median * 1e6));
    json_object_set_new(object, "min_us", json_real(result->min * 1e6));
    json_object_set_new(object, "algbw_GBps",
                        json_real(bench_algorithm_bandwidth(size, library) / 1e9));
    json_object_set_new(object, "busbw_GBps",
                        json_real(bench_bus_bandwidth(sweep, size, library) / 1e9));
    json_object_set_new(object, "wrong",
                        result->checked ? json_integer((json_int_t)result->wrong) : json_null());
    return object;
}

static json_t *verdict_json(const struct bench_sweep *sweep, int library)
{
    struct bench_verdict verdict = bench_judge(sweep, library);

    if (!verdict.sizes)
        return json_null();
    return json_pack("{s:i, s:i, s:f, s:f, s:I, s:s}", "sizes", verdict.sizes, "faster",
                     verdict.faster, "geometric_mean", verdict.mean, "lowest", verdict.lowest,
                     "lowest_bytes", (json_int_t)verdict.lowest_size->bytes, "lowest_library",
                     sweep->groups[verdict.lowest_library].library);
}

/* Times of the others over that of the first: of each, and of the best at each size. */
static json_t *comparison_json(const struct bench_sweep *sweep)
{
    json_t *cells = json_array();
    json_t *all = json_object();

    for (int i = 0; i < sweep->size_count; i++) {
        const struct bench_size *size = &sweep->sizes[i];
        double ratio = bench_ratio_to(sweep, size, BENCH_BEST_PEER);

        if (ratio > 0)
            json_array_append_new(
                cells, json_pack("{s:I, s:s, s:f, s:b}", "bytes", (json_int_t)size->bytes,
                                 "best_peer", sweep->groups[bench_best_peer(sweep, size)].library,
                                 "ratio", ratio, "faster", ratio > 1));
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

int bench_json_write(const struct bench_sweep *sweep, const char *path)
{
    json_t *rows = json_array();
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    json_t *all;

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    for (int i = 0; i < sweep->size_count; i++)
        for (int library = 0; library < sweep->options->library_count; library++)
            json_array_append_new(rows, row(sweep, i, library));
    all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "date", date, "machine",
                    bench_machine_json(), "libraries", libraries(sweep), "options",
                    options_json(sweep), "rows", rows, "comparison", comparison_json(sweep),
                    "limit", limit_json(&sweep->limit));
    return json_file_write("rondo bench", path, all) ? 0 : -1;
}
