/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chrome.c - a simulated call as a time line: a process for each kind of rank, a thread for each of
 * its programs, and beside them what it sends to others. chrome://tracing and Perfetto read it.
 */
#include "cli/simulate/simulate.h"

#include "cli/common/output.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Slices of a thread that follow each other meet in the same whole nanosecond: readers drop those
 * that overlap. */
static double microseconds_at(double seconds)
{
    return round(seconds * 1e9) / 1e3;
}

/* A rank sends to several others at a time, so this is no slice of a thread. */
static void write_flow(const struct record *flow, uint32_t number, const char *pace, FILE *to)
{
    fprintf(to,
            ",\n{\"name\":\"to rank %d\",\"cat\":\"message\",\"ph\":\"b\",\"id2\":{\"local\":"
            "\"%u\"},\"pid\":%d,\"tid\":0,\"ts\":%.3f,\"args\":{\"paced by\":\"%s\"}},\n"
            "{\"name\":\"to rank %d\",\"cat\":\"message\",\"ph\":\"e\",\"id2\":{\"local\":"
            "\"%u\"},\"pid\":%d,\"tid\":0,\"ts\":%.3f}",
            flow->to, number, flow->rank, microseconds_at(flow->begin), pace, flow->to, number,
            flow->rank, microseconds_at(flow->end));
}

static void write_record(const struct programs *programs, const struct simulate_result *times,
                         uint32_t number, FILE *to)
{
    const struct record *record = &times->records[number];
    double begin = microseconds_at(record->begin);
    char pace[160] = "the rank itself";

    if (record->what >= 0)
        route_name(&programs->machine, &programs->hops[record->what], pace, sizeof(pace));
    if (record->kind == RECORD_FLOW)
        write_flow(record, number, pace, to);
    else
        fprintf(to,
                ",\n{\"name\":\"copy or reduce\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                "\"dur\":%.3f,\"args\":{\"paced by\":\"%s\"}}",
                record->rank, programs->tracks[record->track].number, begin,
                microseconds_at(record->end) - begin, pace);
}

static void write_names(const struct programs *programs, FILE *to)
{
    for (int i = 0; i < programs->fold.period; i++)
        fprintf(to,
                "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                "\"rank %d\"}}",
                i ? ",\n" : "", i, i);
    for (uint32_t i = 0; i < programs->track_count; i++)
        fprintf(
            to,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":"
            "\"program %d\"}}",
            programs->tracks[i].rank, programs->tracks[i].number, programs->tracks[i].number);
}

bool chrome_write(const char *file, const struct programs *programs,
                  const struct simulate_result *times)
{
    FILE *to;

    if (!times->records_complete) {
        fprintf(stderr, "rondo simulate: %s: too much happens for a time line\n", file);
        return false;
    }
    to = output_open(file);
    if (to) {
        fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        write_names(programs, to);
        for (uint32_t i = 0; i < times->record_count; i++)
            write_record(programs, times, i, to);
        fprintf(to, "\n]}\n");
    }
    if (to && output_close(to))
        return true;
    fprintf(stderr, "rondo simulate: cannot write %s: %s\n", file, strerror(errno));
    return false;
}
