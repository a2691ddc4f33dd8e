/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chrome.c - a simulated call as a time line: a process for each kind of rank, a thread for each of
 * its programs, and one for what it sends between hosts. chrome://tracing and Perfetto read it.
 */
#include "cli/simulate/simulate.h"

#include "cli/common/output.h"

#include <errno.h>
#include <string.h>

enum { SENDING = PLAN_PROGRAMS_MAX };

static void write_record(const struct programs *programs, const struct record *record, FILE *to)
{
    bool flow = record->kind == RECORD_FLOW;
    int thread = flow ? SENDING : programs->tracks[record->track].number;
    char name[64] = "copy or reduce", pace[160] = "the rank itself";

    if (flow)
        snprintf(name, sizeof(name), "to rank %d", record->to);
    if (record->what >= 0)
        route_name(&programs->machine, &programs->hops[record->what], pace, sizeof(pace));
    fprintf(to,
            ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.4f,\"dur\":%.4f,"
            "\"args\":{\"paced by\":\"%s\"}}",
            name, record->rank, thread, record->begin * 1e6, (record->end - record->begin) * 1e6,
            pace);
}

static void write_names(const struct programs *programs, FILE *to)
{
    for (int i = 0; i < programs->fold.period; i++)
        fprintf(to,
                "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":"
                "\"rank %d\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                "\"args\":{\"name\":\"sending\"}}",
                i ? ",\n" : "", i, i, i, SENDING);
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
            write_record(programs, &times->records[i], to);
        fprintf(to, "\n]}\n");
    }
    if (to && output_close(to))
        return true;
    fprintf(stderr, "rondo simulate: cannot write %s: %s\n", file, strerror(errno));
    return false;
}
