/* SPDX-License-Identifier: BSD-3-Clause */
/* files.c - the records of a sweep, and its files: CSV, JSON that also tells of the machine. */
#include "cli/bench/report.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"
#include "cli/bench/steps.h"
#include "cli/common/output.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

const char *bench_algorithm_of(const struct bench_sweep *sweep, int library)
{
    bool rondo = bench_kinds[sweep->options->libraries[library]].rondo;

    return rondo && sweep->options->call.algorithm[0] ? sweep->options->call.algorithm : "auto";
}

const char *bench_memory_of(const struct bench_sweep *sweep, int library)
{
    enum bench_memory memory = sweep->options->memory;

    if (memory != BENCH_MEMORY_CUDA && !bench_kinds[sweep->options->libraries[library]].rondo)
        memory = bench_is_limit(sweep, library) ? BENCH_MEMORY_SHARED : BENCH_MEMORY_HOST;
    return bench_memory_name(memory);
}

/* Fills in what only some questions have. */
static void add_answers(const struct bench_sweep *sweep, const struct bench_result *result,
                        struct bench_record *record)
{
    enum bench_collective collective = sweep->options->call.collective;
    const struct bench_trace *trace = sweep->options->trace;
    bool beside = result->available && sweep->options->overlap;
    int ranks = (int)record->ranks;

    record->trace = trace ? trace->name : NULL;
    record->predicted_us =
        result->available && result->predicted > 0 ? result->predicted * 1e6 : NAN;
    record->ran = result->available && *result->ran ? result->ran : NULL;
    record->dtype = trace ? NULL : record->dtype; /* each call has its own */
    record->communicators = sweep->options->communicators > 1 ? sweep->options->communicators : 1;
    record->buffers = sweep->options->buffers > 1 ? sweep->options->buffers : 1;
    record->messages_per_s = result->available && bench_collective_is_of_pairs(collective)
                                 ? bench_message_rate(collective, result->median, ranks)
                                 : NAN;
    record->pure_us = beside ? result->pure * 1e6 : NAN;
    record->compute_us = beside ? result->work * 1e6 : NAN;
    record->overlap = beside ? result->overlap : NAN;
    record->rank_bytes = record->communicator_bytes = BENCH_UNKNOWN;
    if (result->available && result->rank_bytes >= 0)
        record->rank_bytes = (long long)result->rank_bytes;
    if (result->available && result->communicator_bytes >= 0)
        record->communicator_bytes = (long long)result->communicator_bytes;
}

struct bench_record bench_record_of(const struct bench_sweep *sweep, int index, int library)
{
    const struct bench_call *call = &sweep->options->call;
    const struct bench_size *size = &sweep->sizes[index];
    const struct bench_result *result = &size->results[library];
    double unit = result->available ? 1 : NAN; /* of figures that there are */
    double ratio = bench_ratio_to(sweep, size, library ? library : BENCH_BEST_PEER);
    int best = ratio > 0 && !library ? bench_best_peer(sweep, size) : -1;
    const struct noise *noise = &result->noise;
    double known = noise->round_count ? unit : NAN;
    struct noise_interval interval = {0};
    struct bench_record record;

    if (ratio > 0 && (library || best > 0))
        interval = noise_ratio_interval(&size->results[0].noise,
                                        &size->results[library ? library : best].noise);

    record = (struct bench_record){
        .library = sweep->groups[library].kind->name,
        .version = sweep->groups[library].version,
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
        .settings = sweep->options->settings,
        .available = result->available,
        .median_us = result->median * 1e6 * unit,
        .min_us = result->min * 1e6 * unit,
        .algbw_GBps = bench_algorithm_bandwidth(size, library) / 1e9 * unit,
        .busbw_GBps = bench_bus_bandwidth(sweep, size, library) / 1e9 * unit,
        .wrong = result->available && result->checked ? (long long)result->wrong : BENCH_UNKNOWN,
        .best_peer = best < 0 ? NULL : sweep->groups[best].kind->name,
        .ratio = ratio > 0 ? ratio : NAN,
        .faster = ratio > 1   ? "yes"
                  : ratio > 0 ? "no"
                              : NULL,
        .p90_us = noise->p90 * 1e6 * known,
        .p95_us = noise->p95 * 1e6 * known,
        .p99_us = noise->p99 * 1e6 * known,
        .max_us = noise->max * 1e6 * known,
        .spread = noise->spread * known,
        .rank_spread = noise->rank_spread * known,
        .steady = isnan(known)      ? NULL
                  : noise->unsteady ? "no"
                                    : "yes",
        .ratio_low = interval.confidence > 0 ? interval.low : NAN,
        .ratio_high = interval.confidence > 0 ? interval.high : NAN,
        .ratio_confidence = interval.confidence > 0 ? interval.confidence : NAN,
    };
    add_answers(sweep, result, &record);
    return record;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void print_rows(const struct bench_sweep *sweep, int index, FILE *to)
{
    for (int library = 0; library < sweep->options->library_count; library++) {
        struct bench_record record = bench_record_of(sweep, index, library);

        if (!record.available)
            continue;
        bench_machine_add(&record);
        bench_record_csv(&record, BENCH_CSV_HEADER, to);
        fprintf(to, "\n");
    }
}

/* Appends the sizes that are not there yet. What cannot be written is said when the file ends. */
static void keep_csv(struct bench_sweeps *sweeps, const char *path)
{
    int sizes = 0;

    if (!sweeps->csv && !sweeps->csv_error) {
        sweeps->csv = output_open(path);
        if (sweeps->csv)
            fprintf(sweeps->csv, "%s\n", BENCH_CSV_HEADER);
        else
            sweeps->csv_error = errno;
    }
    if (!sweeps->csv || sweeps->csv_error)
        return;
    for (int i = 0; i < sweeps->count; i++)
        for (int index = 0; index < sweeps->list[i].size_count; index++)
            if (sizes++ >= sweeps->csv_sizes)
                print_rows(&sweeps->list[i], index, sweeps->csv);
    sweeps->csv_sizes = sizes;
    if (fflush(sweeps->csv))
        sweeps->csv_error = errno;
}

static int end_csv(struct bench_sweeps *sweeps, const char *path)
{
    keep_csv(sweeps, path);
    if (sweeps->csv && !output_close(sweeps->csv) && !sweeps->csv_error)
        sweeps->csv_error = errno;
    sweeps->csv = NULL;
    if (sweeps->csv_error)
        fprintf(stderr, "rondo bench: cannot write %s: %s\n", path, strerror(sweeps->csv_error));
    return sweeps->csv_error ? -1 : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *libraries(const struct bench_sweep *sweep)
{
    json_t *list = json_array();

    for (int i = 0; i < sweep->options->library_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", sweep->groups[i].kind->name,
                                              "version", sweep->groups[i].version));
    return list;
}

static json_t *options_json(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;
    bool reduces = bench_collective_reduces(options->call.collective);

    return json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:i, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, "
        "s:i, s:f, s:i, s:s?}",
        "collective", bench_collective_name(options->call.collective), "algorithm",
        bench_algorithm_of(sweep, 0), "ranks", sweep->groups[0].size, "dtype",
        pattern_type_name(options->call.type), "op",
        reduces ? pattern_op_name(options->call.op) : "none", "root", options->call.root, "memory",
        bench_memory_of(sweep, 0), "in_place", options->call.in_place, "cold", options->cold,
        "rewrite", options->rewrite, "overlap", options->overlap, "graph", options->graph,
        "blocking", options->blocking, "threads", options->threads, "deterministic",
        options->deterministic, "iterations", options->iterations, "warmup", options->warmup,
        "rounds", options->rounds, "seconds", options->seconds, "hosts", options->hosts,
        "interface", options->interface);
}

/* A figure of each round: what `rondo bench compare` compares. */
static json_t *rounds_json(const double *seconds, int count)
{
    json_t *rounds = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(rounds, json_real(seconds[i] * 1e6));
    return rounds;
}

#define ROW_NAMES                                                                            \
    "library,collective,algorithm,ranks,bytes,count,dtype,op,root,memory,in_place,settings," \
    "trace,communicators,buffers,available"
#define ROW_FIGURES                                                                          \
    ",median_us,min_us,algbw_GBps,busbw_GBps,wrong,p90_us,p95_us,p99_us,max_us,spread,"      \
    "rank_spread,steady,ratio,ratio_low,ratio_high,ratio_confidence,messages_per_s,pure_us," \
    "compute_us,overlap,rank_bytes,communicator_bytes,ran,predicted_us"

static void add_rows(json_t *rows, const struct bench_sweep *sweep)
{
    for (int i = 0; i < sweep->size_count; i++)
        for (int library = 0; library < sweep->options->library_count; library++) {
            const struct noise *noise = &sweep->sizes[i].results[library].noise;
            struct bench_record record = bench_record_of(sweep, i, library);
            json_t *row =
                bench_record_json(&record, record.available ? ROW_NAMES ROW_FIGURES : ROW_NAMES);

            json_object_set_new(row, "rounds_us", rounds_json(noise->rounds, noise->round_count));
            json_object_set_new(row, "fastest_us", rounds_json(noise->fastest, noise->round_count));
            json_array_append_new(rows, row);
        }
}

static json_t *verdict_json(const struct bench_sweep *sweep, int library)
{
    struct bench_verdict verdict = bench_judge(sweep, library);

    if (!verdict.count)
        return json_null();
    return json_pack("{s:i, s:i, s:i, s:f, s:f, s:I, s:s}", "sizes", verdict.count, "faster",
                     verdict.faster, "not_steady", verdict.left_out, "geometric_mean",
                     bench_verdict_mean(&verdict), "lowest", verdict.lowest, "lowest_bytes",
                     (json_int_t)verdict.lowest_bytes, "lowest_library",
                     sweep->groups[verdict.lowest_library].kind->name);
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
        json_object_set_new(all, sweep->groups[i].kind->name, verdict_json(sweep, i));
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

/* Returns what runs of one command do not share. */
static json_t *run_json(const struct bench_sweep *sweep)
{
    return json_pack("{s:b, s:o, s:o, s:o}", "complete", sweep->complete, "options",
                     options_json(sweep), "comparison", comparison_json(sweep), "limit",
                     limit_json(&sweep->limit));
}

static json_t *make_json(const void *result)
{
    const struct bench_sweeps *sweeps = result;
    const struct bench_sweep *first = &sweeps->list[0];
    bool complete = sweeps->count == sweeps->expected;
    json_t *rows = json_array(), *runs = json_array();
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;

    for (int i = 0; i < sweeps->count; i++) {
        add_rows(rows, &sweeps->list[i]);
        json_array_append_new(runs, run_json(&sweeps->list[i]));
        complete = complete && sweeps->list[i].complete;
    }
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "date", date, "complete",
                     complete, "machine", bench_machine_json(), "libraries", libraries(first),
                     "options", options_json(first), "rows", rows, "comparison",
                     comparison_json(first), "limit", limit_json(&first->limit), "runs", runs);
}

void bench_sweeps_keep(struct bench_sweeps *sweeps)
{
    const struct bench_writers writers = {"rondo bench", NULL, make_json, NULL};
    const struct bench_options *asked = sweeps->list[0].options;
    const struct bench_options json = {.json = asked->json};

    if (asked->csv)
        keep_csv(sweeps, asked->csv);
    if (json.json && output_again(json.json))
        bench_write_files(&writers, &json, sweeps);
}

int bench_sweeps_write(struct bench_sweeps *sweeps)
{
    const struct bench_writers writers = {"rondo bench", NULL, make_json,
                                          bench_sweeps_have_points(sweeps) ? bench_sweeps_plot
                                                                           : NULL};
    struct bench_options rest = *sweeps->list[0].options;
    int failed = rest.csv ? end_csv(sweeps, rest.csv) : 0;

    rest.csv = NULL;
    return bench_write_files(&writers, &rest, sweeps) || failed ? -1 : 0;
}
