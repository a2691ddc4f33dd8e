/* SPDX-License-Identifier: BSD-3-Clause */
/* spans.c - the program's own spans: what they took, and how long calls of the same process went on
 * meanwhile. */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    const struct stretch *one = a, *other = b;

    return one->begin < other->begin ? -1 : one->begin > other->begin;
}

size_t traced_stretches(const struct traced *traced, int file, struct stretch *stretches)
{
    size_t calls = 0, count = 0;

    for (uint32_t i = 0; i < traced->call_count; i++)
        if (traced->calls[i].file == file)
            stretches[calls++] =
                (struct stretch){.begin = traced->calls[i].begin, .end = traced->calls[i].end};
    if (calls)
        qsort(stretches, calls, sizeof(*stretches), by_begin);
    for (size_t i = 0; i < calls; i++) {
        struct stretch *last = count ? &stretches[count - 1] : NULL;

        if (last && stretches[i].begin <= last->end) {
            last->end = fmax(last->end, stretches[i].end);
            continue;
        }
        stretches[count] = stretches[i];
        stretches[count].before = last ? last->before + last->end - last->begin : 0;
        count++;
    }
    return count;
}

/* Seconds of stretches up to a moment. */
static double until(const struct stretch *stretches, size_t count, double moment)
{
    size_t low = 0, high = count;

    while (low < high) { /* the first that begins after it */
        size_t middle = low + (high - low) / 2;

        if (stretches[middle].begin <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    return stretches[low - 1].before + fmin(moment, stretches[low - 1].end) -
           stretches[low - 1].begin;
}

struct sum {
    const char *name;
    unsigned count;
    double seconds, longest, in_calls;
};

static void add_file(const struct traced *traced, int file, struct stretch *stretches,
                     struct sum *sums, int *count)
{
    size_t there = traced_stretches(traced, file, stretches);

    for (uint32_t i = 0; i < traced->span_count; i++) {
        const struct traced_span *span = &traced->spans[i];
        struct sum *sum;

        if (span->file != file || !span->ended)
            continue;
        sum =
            traced_of_name(sums, sizeof(*sums), count, traced->files[file].page->name[span->name]);
        if (!sum)
            continue;
        sum->count++;
        sum->seconds += span->end - span->begin;
        sum->longest = fmax(sum->longest, span->end - span->begin);
        sum->in_calls += until(stretches, there, span->end) - until(stretches, there, span->begin);
    }
}

void traced_report_spans(const struct traced *traced)
{
    struct stretch *stretches = calloc((size_t)traced->call_count + 1, sizeof(*stretches));
    struct sum *sums = calloc(TRACE_NAMES, sizeof(*sums));
    int count = 0;

    for (int file = 0; file < traced->file_count && stretches && sums; file++)
        add_file(traced, file, stretches, sums, &count);
    if (count)
        printf("\n     spans   together       mean    longest  in calls meanwhile\n");
    for (int i = 0; i < count; i++)
        printf("  %8u  %9s  %9s  %9s          %9s  %s\n", sums[i].count,
               traced_seconds(sums[i].seconds), traced_seconds(sums[i].seconds / sums[i].count),
               traced_seconds(sums[i].longest), traced_seconds(sums[i].in_calls), sums[i].name);
    free(stretches);
    free(sums);
}
