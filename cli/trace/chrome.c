/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chrome.c - a time line that Perfetto and chrome://tracing open: a process for each traced file,
 * and in it, for each communicator, a track of calls and one for the steps of each program. A wait
 * is named after the rank that it is for. Spans and messages with tags are drawn beside
 * them; calls on CUDA streams have rows of their own (streams.c).
 */
#include "cli/trace/trace.h"

#include "cli/common/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRACKS = 1 + PLAN_PROGRAMS_MAX }; /* of a communicator */

static void write_thread(FILE *to, int process, int track, const char *name, uint64_t comm)
{
    fprintf(to,
            ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":"
            "\"%s %04llx\"}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
            "\"args\":{\"sort_index\":%d}}",
            process, track, name, (unsigned long long)(comm >> 48), process, track, track);
}

static void write_names(const struct traced *traced, FILE *to)
{
    for (int i = 0; i < traced->file_count; i++) {
        const struct trace_header *header = &traced->files[i].page->header;

        fprintf(to,
                "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d "
                "(%s, process %d on %s)\"}},\n{\"name\":\"process_sort_index\",\"ph\":\"M\","
                "\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                i ? ",\n" : "", i, traced_rank(&traced->files[i]), header->program, header->pid,
                header->host, i, i);
    }
}

/* Only tracks that something is on are named. */
static void write_tracks(const struct traced *traced, const bool *used, FILE *to)
{
    for (int i = 0; i < traced->file_count; i++)
        for (int comm = 0; comm < TRACE_COMMS; comm++)
            for (int track = 0; track < TRACKS; track++) {
                char name[32] = "calls of";

                if (!used[(i * TRACE_COMMS + comm) * TRACKS + track])
                    continue;
                if (track)
                    snprintf(name, sizeof(name), "program %d of", track - 1);
                write_thread(to, i, comm * TRACKS + track, name,
                             traced->files[i].page->comm[comm].id);
            }
}

static void name_step(const struct traced_step *step, char *text, size_t size)
{
    if (step_moves(step))
        snprintf(text, size, "%s", step->verb == PLAN_COPY ? "copy" : "reduce");
    else
        snprintf(text, size, "wait for %srank %d", step->event == PLAN_DATA ? "" : "room at ",
                 step->peer);
}

static void write_call(const struct traced *traced, const struct traced_call *call, double zero,
                       FILE *to)
{
    fprintf(to,
            ",\n{\"name\":\"%s\",\"cat\":\"call\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"number\":%u,\"rank\":%d,\"ended\":%s}}",
            traced_name(traced, call), call->file, call->comm * TRACKS, (call->begin - zero) * 1e6,
            (call->end - call->begin) * 1e6, call->number, traced_comm(traced, call)->rank,
            call->ended ? "true" : "false");
}

static void write_step(const struct traced *traced, const struct traced_step *step, double zero,
                       FILE *to)
{
    const struct traced_call *call = &traced->calls[step->call];
    char name[64];

    name_step(step, name, sizeof(name));
    fprintf(to,
            ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"call\":%u,\"step\":%u,\"bytes\":%llu}}",
            name, step_moves(step) ? "move" : "wait", call->file,
            call->comm * TRACKS + 1 + step->program, (step->begin - zero) * 1e6,
            (step->end - step->begin) * 1e6, call->number, step->step,
            (unsigned long long)step->bytes);
}

/* This tells one slice of a process, which is none of a thread, from the next. An "id" would
 * be one of all processes, and Perfetto would draw the slice beside no rank. */
#define LOCAL_ID "\"id2\":{\"local\":\"%u\"}"

/* Spans of one name may overlap, so they are no slices of a thread. */
static void write_span(const struct traced *traced, uint32_t number, double zero, FILE *to)
{
    const struct traced_span *span = &traced->spans[number];
    const char *name = traced->files[span->file].page->name[span->name];

    fprintf(to,
            ",\n{\"name\":\"%s\",\"cat\":\"span\",\"ph\":\"b\"," LOCAL_ID ",\"pid\":%d,\"tid\":0,"
            "\"ts\":%.3f,\"args\":{\"number\":%u}},\n{\"name\":\"%s\",\"cat\":\"span\",\"ph\":"
            "\"e\"," LOCAL_ID ",\"pid\":%d,\"tid\":0,\"ts\":%.3f}",
            name, number, span->file, (span->begin - zero) * 1e6, span->number, name, number,
            span->file, (span->end - zero) * 1e6);
}

/* Messages are under way side by side, so they are no slices of a thread either; those with one
 * peer have one name, and are drawn together. */
static void write_message(const struct traced *traced, uint32_t number, double zero, FILE *to)
{
    const struct traced_message *message = &traced->messages[number];
    char name[64];

    traced_name_message(message, name, sizeof(name));
    fprintf(to,
            ",\n{\"name\":\"%s\",\"cat\":\"message\",\"ph\":\"b\"," LOCAL_ID ",\"pid\":%d,"
            "\"tid\":0,\"ts\":%.3f,\"args\":{\"peer\":%d,\"tag\":%d,\"bytes\":%llu,"
            "\"communicator\":\"%04llx\",\"state\":\"%s\"}},\n{\"name\":\"%s\",\"cat\":"
            "\"message\",\"ph\":\"e\"," LOCAL_ID ",\"pid\":%d,\"tid\":0,\"ts\":%.3f}",
            name, number, message->file, (message->begin - zero) * 1e6, message->peer, message->tag,
            (unsigned long long)message->bytes,
            (unsigned long long)(traced->files[message->file].page->comm[message->comm].id >> 48),
            message->failed  ? "failed"
            : message->ended ? "complete"
                             : "under way",
            name, number, message->file, (message->end - zero) * 1e6);
}

static bool *used_tracks(const struct traced *traced)
{
    bool *used = calloc((size_t)traced->file_count * TRACE_COMMS * TRACKS, sizeof(*used));

    for (uint32_t i = 0; i < traced->call_count && used; i++)
        used[(traced->calls[i].file * TRACE_COMMS + traced->calls[i].comm) * TRACKS] = true;
    for (uint32_t i = 0; i < traced->step_count && used; i++) {
        const struct traced_call *call = &traced->calls[traced->steps[i].call];

        used[(call->file * TRACE_COMMS + call->comm) * TRACKS + 1 + traced->steps[i].program] =
            true;
    }
    return used;
}

bool traced_chrome(const struct traced *traced, const char *file)
{
    bool *used = used_tracks(traced);
    FILE *to = used ? output_open(file) : NULL;
    double zero, last;

    traced_moments(traced, &zero, &last);
    if (to) {
        fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        write_names(traced, to);
        write_tracks(traced, used, to);
        for (uint32_t i = 0; i < traced->call_count; i++)
            write_call(traced, &traced->calls[i], zero, to);
        for (uint32_t i = 0; i < traced->step_count; i++)
            write_step(traced, &traced->steps[i], zero, to);
        for (uint32_t i = 0; i < traced->span_count; i++)
            write_span(traced, i, zero, to);
        for (uint32_t i = 0; i < traced->message_count; i++)
            write_message(traced, i, zero, to);
        traced_chrome_streams(traced, zero, to);
        fprintf(to, "\n]}\n");
    }
    free(used);
    if (to && output_close(to))
        return true;
    fprintf(stderr, "rondo trace: cannot write %s: %s\n", file, strerror(errno));
    return false;
}
