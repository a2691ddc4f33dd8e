/* SPDX-License-Identifier: BSD-3-Clause */
/* streams.c - calls on CUDA streams: how long they waited there, and how long the device took for
 * them; as a table, and as a row of the time line for each stream. */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ROWS = 10 };

static const char *name_of(const struct traced *traced, const struct traced_queued *queued)
{
    return traced->files[queued->file].page->name[queued->name];
}

void traced_prolong_queued(struct traced *traced)
{
    double first, last;

    traced_moments(traced, &first, &last);
    for (uint32_t i = 0; i < traced->queued_count; i++) {
        struct traced_queued *queued = &traced->queued[i];

        if (!queued->begun)
            queued->begin = last;
        if (!queued->ended)
            queued->end = last;
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

/* The calls of one name. */
struct sum {
    const char *name;
    unsigned count, waiting, running; /* the last two at the end of the trace */
    double waited, longest_wait, took, longest;
};

static int by_seconds(const void *a, const void *b)
{
    const struct sum *one = a, *other = b;

    return one->took < other->took ? 1 : one->took > other->took ? -1 : 0;
}

static void add(struct sum *sum, const struct traced_queued *queued)
{
    double waited = queued->begin - queued->queued, took = queued->end - queued->begin;

    sum->count++;
    sum->waiting += !queued->begun;
    sum->running += queued->begun && !queued->ended;
    sum->waited += waited;
    sum->longest_wait = fmax(sum->longest_wait, waited);
    sum->took += took;
    sum->longest = fmax(sum->longest, took);
}

static void write_sum(const struct sum *sum)
{
    printf("  %8u  %9s  %9s", sum->count, traced_seconds(sum->waited / sum->count),
           traced_seconds(sum->longest_wait));
    printf("  %9s  %9s  %9s  %s", traced_seconds(sum->took), traced_seconds(sum->took / sum->count),
           traced_seconds(sum->longest), sum->name);
    if (sum->waiting)
        printf("; %u still waited at the end", sum->waiting);
    if (sum->running)
        printf("; %u still ran at the end", sum->running);
    printf("\n");
}

void traced_report_streams(const struct traced *traced)
{
    struct sum *sums = calloc(TRACE_NAMES, sizeof(*sums));
    int count = 0;

    for (uint32_t i = 0; i < traced->queued_count && sums; i++) {
        struct sum *sum =
            traced_of_name(sums, sizeof(*sums), &count, name_of(traced, &traced->queued[i]));

        if (sum)
            add(sum, &traced->queued[i]);
    }
    if (count) {
        qsort(sums, (size_t)count, sizeof(*sums), by_seconds);
        printf("\nCalls on CUDA streams: how long they waited there, and ran\n"
               "     calls     waited    longest   together       mean    longest\n");
    }
    for (int i = 0; i < count && i < MOST_ROWS; i++)
        write_sum(&sums[i]);
    free(sums);
}

/* ---- The time line --------------------------------------------------------------------------- */

static int by_stream(const void *a, const void *b)
{
    const struct traced_queued *one = a, *other = b;

    if (one->file != other->file)
        return one->file - other->file;
    if (one->stream != other->stream)
        return one->stream < other->stream ? -1 : 1;
    return one->queued < other->queued ? -1 : one->queued > other->queued;
}

static void write_row(const struct traced_queued *queued, FILE *to)
{
    unsigned row = TRACED_STREAM_ROWS + queued->stream;

    fprintf(to,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":"
            "\"CUDA stream %u\"}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,"
            "\"tid\":%u,\"args\":{\"sort_index\":%u}}",
            queued->file, row, queued->stream, queued->file, row, row);
}

static void write_slice(const struct traced *traced, const struct traced_queued *queued, bool waits,
                        const double time[2], FILE *to)
{
    fprintf(to,
            ",\n{\"name\":\"%s%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"number\":%u,\"communicator\":\"%04llx\",\"waited\":%.3f,"
            "\"begun\":%s,\"ended\":%s}}",
            waits ? "in the stream: " : "", name_of(traced, queued), waits ? "queued" : "device",
            queued->file, TRACED_STREAM_ROWS + queued->stream, time[0] * 1e6,
            (time[1] - time[0]) * 1e6, queued->number,
            (unsigned long long)(traced->files[queued->file].page->comm[queued->comm].id >> 48),
            (queued->begin - queued->queued) * 1e6, queued->begun ? "true" : "false",
            queued->ended ? "true" : "false");
}

/* A stream comes to one call after the other, so the wait of one is drawn from where the one before
 * it ended. Returns where this one does. */
static double write_queued(const struct traced *traced, const struct traced_queued *queued,
                           double zero, double before, FILE *to)
{
    double begin = fmax(queued->begin - zero, before), end = fmax(queued->end - zero, begin);
    double wait = fmax(queued->queued - zero, before);

    if (wait < begin)
        write_slice(traced, queued, true, (const double[]){wait, begin}, to);
    if (queued->begun)
        write_slice(traced, queued, false, (const double[]){begin, end}, to);
    return end;
}

void traced_chrome_streams(const struct traced *traced, double zero, FILE *to)
{
    double before = 0;

    if (traced->queued_count)
        qsort(traced->queued, traced->queued_count, sizeof(*traced->queued), by_stream);
    for (uint32_t i = 0; i < traced->queued_count; i++) {
        const struct traced_queued *queued = &traced->queued[i];

        if (!i || queued[-1].file != queued->file || queued[-1].stream != queued->stream) {
            write_row(queued, to);
            before = 0;
        }
        before = write_queued(traced, queued, zero, before, to);
    }
}
