/* SPDX-License-Identifier: BSD-3-Clause */
/* events.c - what the events of a file say together: calls and the steps of each, the program's own
 * spans, messages with tags, and calls on CUDA streams. */
#include "cli/trace/trace.h"

#include <stdlib.h>
#include <string.h>

/* Returns room for one more of them; NULL: out of memory. */
static void *one_more(void **at, uint32_t *count, uint32_t *room, size_t bytes)
{
    if (*count == *room) {
        uint32_t more = *room ? *room * 2 : 4096;
        void *larger = realloc(*at, more * bytes);

        if (!larger)
            return NULL;
        *at = larger;
        *room = more;
    }
    return (char *)*at + bytes * (*count)++;
}

enum { TABLES = 3 }; /* of numbers, by what begins: calls, messages, calls in streams */

/* Those of one communicator in one file: entry i is the number, from 1, of its call `first` + i; 0:
 * it is not known. */
struct numbers {
    uint32_t *at, count, room, first;
};

static uint32_t *number_of(struct numbers *numbers, uint32_t call, bool add)
{
    if (!numbers->count)
        numbers->first = call;
    if (call < numbers->first || (!add && call - numbers->first >= numbers->count))
        return NULL;
    if (call - numbers->first >= numbers->room) {
        uint32_t room = 2 * (call - numbers->first) + 1024;
        uint32_t *larger = realloc(numbers->at, room * sizeof(*larger));

        if (!larger)
            return NULL;
        memset(larger + numbers->room, 0, (room - numbers->room) * sizeof(*larger));
        numbers->at = larger;
        numbers->room = room;
    }
    if (call - numbers->first >= numbers->count)
        numbers->count = call - numbers->first + 1;
    return &numbers->at[call - numbers->first];
}

/* A call that begins once more goes on with another name. */
static bool begin_call(struct traced *traced, int file, const struct trace_event *event,
                       struct numbers *numbers)
{
    uint32_t *number = number_of(numbers, event->call, true);
    double when = 1e-9 * (double)event->when;
    struct traced_call *call;

    if (!number)
        return false;
    if (!*number) {
        call = one_more((void **)&traced->calls, &traced->call_count, &traced->call_room,
                        sizeof(*call));
        if (!call)
            return false;
        *number = traced->call_count;
        *call = (struct traced_call){
            .file = file, .comm = event->comm, .number = event->of.begun.number, .begin = when};
    }
    call = &traced->calls[*number - 1];
    call->name = event->of.begun.name < TRACE_NAMES ? event->of.begun.name : 0;
    call->end = when;
    for (int i = 0; i < PLAN_PROGRAMS_MAX; i++)
        call->program_end[i] = when;
    return true;
}

static bool add_step(struct traced *traced, const struct trace_event *event, uint32_t number)
{
    struct traced_call *call = &traced->calls[number];
    struct traced_step *step =
        one_more((void **)&traced->steps, &traced->step_count, &traced->step_room, sizeof(*step));
    double begin;

    if (!step)
        return false;
    /* One thread runs all programs: what is no wait began after the last step of any of them. */
    begin = event->verb == PLAN_WAIT ? call->program_end[event->program] : call->end;
    *step = (struct traced_step){.call = number,
                                 .program = event->program,
                                 .verb = event->verb,
                                 .event = event->event,
                                 .step = event->step,
                                 .peer = event->peer,
                                 .bytes = event->of.bytes,
                                 .begin = begin,
                                 .end = 1e-9 * (double)event->when};
    call->program_end[event->program] = step->end;
    call->end = step->end;
    if (step_moves(step))
        call->moved += step->end - step->begin;
    return true;
}

static bool begin_span(struct traced *traced, int file, const struct trace_event *event)
{
    double when = 1e-9 * (double)event->when;
    struct traced_span *span =
        one_more((void **)&traced->spans, &traced->span_count, &traced->span_room, sizeof(*span));

    if (span)
        *span = (struct traced_span){
            .file = file,
            .name = event->of.begun.name < TRACE_NAMES ? event->of.begun.name : 0,
            .number = event->of.begun.number,
            .begin = when,
            .end = when};
    return span != NULL;
}

/* The last one of that name and number which is under way; few are, and they are looked for among
 * the last ones. */
static void end_span(struct traced *traced, int file, const struct trace_event *event)
{
    enum { UNDER_WAY = 4096 };
    uint32_t last = traced->span_count;

    for (uint32_t i = 0; i < last && i < UNDER_WAY; i++) {
        struct traced_span *span = &traced->spans[last - 1 - i];

        if (span->file == file && !span->ended && span->name == event->of.begun.name &&
            span->number == event->of.begun.number) {
            span->end = 1e-9 * (double)event->when;
            span->ended = true;
            return;
        }
    }
    traced->files[file].lost++;
}

static bool post_message(struct traced *traced, int file, const struct trace_event *event,
                         struct numbers *numbers)
{
    uint32_t *number = number_of(numbers, event->call, true);
    double when = 1e-9 * (double)event->when;
    struct traced_message *message =
        number ? one_more((void **)&traced->messages, &traced->message_count, &traced->message_room,
                          sizeof(*message))
               : NULL;

    if (!message)
        return false;
    *number = traced->message_count;
    *message = (struct traced_message){.file = file,
                                       .comm = event->comm,
                                       .sends = event->kind == TRACE_SEND,
                                       .peer = event->peer,
                                       .tag = event->tag,
                                       .bytes = event->of.bytes,
                                       .begin = when,
                                       .end = when};
    return true;
}

static void end_message(struct traced_message *message, const struct trace_event *event)
{
    message->ended = true;
    message->failed = event->kind == TRACE_FAILED;
    message->peer = event->peer;
    message->tag = event->tag;
    message->bytes = event->of.bytes;
    message->end = 1e-9 * (double)event->when;
}

static bool queue_call(struct traced *traced, int file, const struct trace_event *event,
                       struct numbers *numbers)
{
    uint32_t *number = number_of(numbers, event->call, true);
    double when = 1e-9 * (double)event->when;
    struct traced_queued *queued = number
                                       ? one_more((void **)&traced->queued, &traced->queued_count,
                                                  &traced->queued_room, sizeof(*queued))
                                       : NULL;

    if (!queued)
        return false;
    *number = traced->queued_count;
    *queued = (struct traced_queued){
        .file = file,
        .comm = event->comm,
        .name = event->of.begun.name < TRACE_NAMES ? event->of.begun.name : 0,
        .number = event->of.begun.number,
        .stream = event->stream,
        .queued = when,
        .begin = when,
        .end = when};
    return true;
}

/* Returns the table that knows calls of the event's communicator, or its messages, or those in
 * streams, by number. */
static struct numbers *numbers_of(struct numbers *numbers, const struct trace_event *event)
{
    int table = event->kind >= TRACE_QUEUED ? 2 : event->kind >= TRACE_SEND;

    return &numbers[table * TRACE_COMMS + event->comm];
}

static bool is_first(const struct trace_event *event)
{
    return event->kind == TRACE_BEGIN || event->kind == TRACE_SEND || event->kind == TRACE_RECV ||
           event->kind == TRACE_QUEUED;
}

/* An event that was half written when the process ended may make none. */
static bool makes_sense(const struct trace_page *page, const struct trace_event *event,
                        struct numbers *numbers)
{
    if (event->comm >= traced_comms(page) || event->kind >= TRACE_KINDS ||
        event->program >= PLAN_PROGRAMS_MAX)
        return false;
    numbers = numbers_of(numbers, event);
    return !is_first(event) || !numbers->count || event->call - numbers->first <= page->header.room;
}

/* Adds what begins with the event; false: out of memory. */
static bool begin(struct traced *traced, int file, const struct trace_event *event,
                  struct numbers *numbers)
{
    if (event->kind == TRACE_BEGIN)
        return begin_call(traced, file, event, numbers);
    if (event->kind == TRACE_QUEUED)
        return queue_call(traced, file, event, numbers);
    return post_message(traced, file, event, numbers);
}

/* Adds to the call or message of that index; false: out of memory. */
static bool go_on(struct traced *traced, const struct trace_event *event, uint32_t number)
{
    switch (event->kind) {
    case TRACE_STEP:
        return add_step(traced, event, number);
    case TRACE_COMPLETE:
    case TRACE_FAILED:
        end_message(&traced->messages[number], event);
        return true;
    case TRACE_STREAM_BEGIN:
        traced->queued[number].begin = traced->queued[number].end = 1e-9 * (double)event->when;
        traced->queued[number].begun = true;
        return true;
    case TRACE_STREAM_END:
        traced->queued[number].end = 1e-9 * (double)event->when;
        traced->queued[number].ended = true;
        return true;
    default:
        traced->calls[number].end = 1e-9 * (double)event->when;
        traced->calls[number].ended = true;
        return true;
    }
}

/* Takes one event; false: out of memory. One that makes no sense, or whose call began before the
 * oldest event, counts as lost. */
static bool take(struct traced *traced, int file, const struct trace_event *event,
                 struct numbers *numbers)
{
    uint32_t *number;

    if (event->kind == TRACE_NOTHING)
        return true;
    if (!makes_sense(traced->files[file].page, event, numbers)) {
        traced->files[file].lost++;
        return true;
    }
    if (event->kind == TRACE_SPAN)
        return begin_span(traced, file, event);
    if (event->kind == TRACE_SPAN_END) {
        end_span(traced, file, event);
        return true;
    }
    numbers = numbers_of(numbers, event);
    if (is_first(event))
        return begin(traced, file, event, numbers);
    number = number_of(numbers, event->call, false);
    if (number && *number)
        return go_on(traced, event, *number - 1);
    traced->files[file].lost++;
    return true;
}

bool traced_take_events(struct traced *traced, int file)
{
    const struct trace_page *page = traced->files[file].page;
    uint64_t taken = atomic_load_explicit(&page->header.taken, memory_order_relaxed);
    uint64_t oldest = taken > page->header.room ? taken - page->header.room : 0;
    struct numbers *numbers = calloc(TABLES * TRACE_COMMS, sizeof(*numbers));
    bool good = numbers != NULL;

    traced->files[file].lost = oldest;
    for (uint64_t i = oldest; i < taken && good; i++)
        good = take(traced, file, &page->events[i % page->header.room], numbers);
    for (int i = 0; i < TABLES * TRACE_COMMS && numbers; i++)
        free(numbers[i].at);
    free(numbers);
    return good;
}
