/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sums.c - calls by what they are: how many, how long, and what the cost model expects, as a table,
 * as JSON, and as text that Prometheus reads.
 *
 * The processes have added them up, so they are of all calls, also where the ring has kept only the
 * last ones or is not there.
 */
#include "cli/trace/trace.h"

#include "cli/common/json_file.h"
#include "cli/common/output.h"

#include "rondo/rondo.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 10 };

static uint64_t read_sum(const _Atomic uint64_t *sum)
{
    return atomic_load_explicit(sum, memory_order_relaxed);
}

static json_int_t bytes_of(const struct trace_sum *sum)
{
    return (json_int_t)(sum->count * rondo_type_size((rondo_type)sum->type));
}

static double calls_of(const struct trace_sum *sum)
{
    return (double)read_sum(&sum->calls);
}

static double seconds_of(const struct trace_sum *sum)
{
    return 1e-9 * (double)read_sum(&sum->nanoseconds);
}

static double bytes_together(const struct trace_sum *sum)
{
    return (double)bytes_of(sum) * calls_of(sum);
}

static double shortest_of(const struct trace_sum *sum)
{
    return 1e-9 * (double)read_sum(&sum->shortest);
}

static double longest_of(const struct trace_sum *sum)
{
    return 1e-9 * (double)read_sum(&sum->longest);
}

static double predicted_of(const struct trace_sum *sum)
{
    return sum->predicted ? 1e-9 * (double)sum->predicted : NAN;
}

static bool has_ended(const struct trace_page *page, uint32_t name)
{
    return read_sum(&page->sum[name].calls) > 0;
}

uint64_t traced_sum_calls(const struct traced_file *file)
{
    uint64_t calls = 0;

    for (int i = 0; i < TRACE_NAMES; i++)
        calls += read_sum(&file->page->sum[i].calls);
    return calls;
}

/* ---- All ranks together ---------------------------------------------------------------------- */

void *traced_of_name(void *table, size_t size, int *count, const char *name)
{
    for (int i = 0; i < *count; i++) {
        const char **found = (const char **)((char *)table + (size_t)i * size);

        if (!strcmp(*found, name))
            return found;
    }
    if (*count == TRACE_NAMES)
        return NULL;
    return memcpy((char *)table + (size_t)(*count)++ * size, &name, sizeof(name));
}

static void add_file(const struct trace_page *page, struct traced_kind *kinds, int *count)
{
    for (uint32_t i = 0; i < TRACE_NAMES; i++) {
        const struct trace_sum *sum = &page->sum[i];
        struct traced_kind *kind =
            has_ended(page, i) ? traced_of_name(kinds, sizeof(*kinds), count, page->name[i]) : NULL;

        if (!kind)
            continue;
        kind->shortest = fmin(kind->calls ? kind->shortest : INFINITY, shortest_of(sum));
        kind->calls += read_sum(&sum->calls);
        kind->seconds += seconds_of(sum);
        kind->longest = fmax(kind->longest, longest_of(sum));
        kind->predicted = fmax(kind->predicted, 1e-9 * (double)sum->predicted);
    }
}

static int by_seconds(const void *a, const void *b)
{
    const struct traced_kind *one = a, *other = b;

    return one->seconds < other->seconds ? 1 : one->seconds > other->seconds ? -1 : 0;
}

struct traced_kind *traced_kinds(const struct traced *traced, int *ret_count)
{
    struct traced_kind *kinds = calloc(TRACE_NAMES, sizeof(*kinds));

    *ret_count = 0;
    for (int i = 0; i < traced->file_count && kinds; i++)
        add_file(traced->files[i].page, kinds, ret_count);
    for (uint32_t i = 0; i < traced->call_count && kinds; i++) {
        const struct traced_call *call = &traced->calls[i];
        struct traced_kind *kind =
            traced_of_name(kinds, sizeof(*kinds), ret_count, traced_name(traced, call));

        if (!kind)
            continue;
        kind->unfinished += !call->ended;
        kind->traced += call->end - call->begin;
        kind->waited += call->end - call->begin - call->moved;
    }
    if (*ret_count)
        qsort(kinds, (size_t)*ret_count, sizeof(*kinds), by_seconds);
    return kinds;
}

static void write_kind(const struct traced_kind *kind)
{
    char waiting[16] = "-";

    if (kind->traced > 0)
        snprintf(waiting, sizeof(waiting), "%.0f %%", 100 * kind->waited / kind->traced);
    printf("  %8llu  %9s  %9s  %9s  %9s  %9s  %7s  %s", (unsigned long long)kind->calls,
           traced_seconds(kind->seconds),
           kind->calls ? traced_seconds(kind->seconds / (double)kind->calls) : "-",
           kind->calls ? traced_seconds(kind->shortest) : "-",
           kind->predicted > 0 ? traced_seconds(kind->predicted) : "-",
           traced_seconds(kind->longest), waiting, kind->name);
    if (kind->unfinished)
        printf("; %u did not end", kind->unfinished);
    printf("\n");
}

void traced_report_kinds(const struct traced *traced)
{
    int count;
    struct traced_kind *kinds = traced_kinds(traced, &count);

    printf("\n     calls   together       mean   shortest  predicted    longest  waiting  call\n");
    for (int i = 0; i < count && i < MOST_ROWS; i++)
        write_kind(&kinds[i]);
    if (count > MOST_ROWS)
        printf("  and %d more kinds\n", count - MOST_ROWS);
    free(kinds);
}

/* ---- By rank, for other programs ------------------------------------------------------------- */

static json_t *json_of_call(const struct trace_page *page, uint32_t name)
{
    const struct trace_sum *sum = &page->sum[name];

    return json_pack(
        "{s:s,s:s,s:I,s:s,s:I,s:s,s:I,s:f,s:f,s:f,s:o}", "call", page->name[name], "collective",
        rondo_collective_name((rondo_collective)sum->collective), "count", (json_int_t)sum->count,
        "type", rondo_type_name((rondo_type)sum->type), "bytes", bytes_of(sum), "algorithm",
        sum->algorithm, "calls", (json_int_t)read_sum(&sum->calls), "seconds", seconds_of(sum),
        "shortest", shortest_of(sum), "longest", longest_of(sum), "predicted",
        sum->predicted ? json_real(1e-9 * (double)sum->predicted) : json_null());
}

static json_t *json_of_rank(const struct traced_file *file)
{
    const struct trace_header *header = &file->page->header;
    json_t *calls = json_array();

    for (uint32_t i = 0; i < TRACE_NAMES; i++)
        if (has_ended(file->page, i))
            json_array_append_new(calls, json_of_call(file->page, i));
    return json_pack("{s:i,s:s,s:i,s:s,s:o}", "rank", traced_rank(file), "host", header->host,
                     "process", header->pid, "program", header->program, "calls", calls);
}

bool traced_json(const struct traced *traced, const char *file)
{
    json_t *ranks = json_array();

    for (int i = 0; i < traced->file_count; i++)
        json_array_append_new(ranks, json_of_rank(&traced->files[i]));
    return json_file_write("rondo trace", file, json_pack("{s:o}", "ranks", ranks));
}

/* A metric of Prometheus; NAN: of this call there is none. */
static const struct metric {
    const char *name, *type, *help;
    double (*value)(const struct trace_sum *sum);
} metrics[] = {
    {"rondo_calls_total", "counter", "Calls that have ended.", calls_of},
    {"rondo_call_seconds_total", "counter", "How long they took together.", seconds_of},
    {"rondo_call_bytes_total", "counter", "Bytes of their counts together.", bytes_together},
    {"rondo_call_shortest_seconds", "gauge", "The shortest of them.", shortest_of},
    {"rondo_call_longest_seconds", "gauge", "The longest of them.", longest_of},
    {"rondo_call_predicted_seconds", "gauge", "What the cost model expects of one.", predicted_of},
};

static void write_metric(const struct traced_file *file, const struct metric *metric, FILE *to)
{
    const struct trace_page *page = file->page;

    for (uint32_t i = 0; i < TRACE_NAMES; i++) {
        const struct trace_sum *sum = &page->sum[i];
        double value = has_ended(page, i) ? metric->value(sum) : NAN;

        if (isnan(value))
            continue;
        fprintf(to,
                "%s{rank=\"%d\",host=\"%s\",call=\"%s\",collective=\"%s\",bytes=\"%lld\","
                "algorithm=\"%s\"} %.10g\n",
                metric->name, traced_rank(file), page->header.host, page->name[i],
                rondo_collective_name((rondo_collective)sum->collective), (long long)bytes_of(sum),
                sum->algorithm, value);
    }
}

bool traced_prometheus(const struct traced *traced, const char *file)
{
    FILE *to = output_open(file);

    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]) && to; i++) {
        fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help,
                metrics[i].name, metrics[i].type);
        for (int j = 0; j < traced->file_count; j++)
            write_metric(&traced->files[j], &metrics[i], to);
    }
    if (to && output_close(to))
        return true;
    fprintf(stderr, "rondo trace: cannot write %s: %s\n", file, strerror(errno));
    return false;
}
