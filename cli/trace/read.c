/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - the files of a job, and what their events say together: calls, and the steps of each. */
#include "cli/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *traced_name(const struct traced *traced, const struct traced_call *call)
{
    return traced->files[call->file].page->name[call->name];
}

const struct trace_comm *traced_comm(const struct traced *traced, const struct traced_call *call)
{
    return &traced->files[call->file].page->comm[call->comm];
}

int traced_rank(const struct traced_file *file)
{
    return file->page->header.rank >= 0 ? file->page->header.rank : file->page->comm[0].rank;
}

bool step_moves(const struct traced_step *step)
{
    return step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static uint32_t comms_of(const struct trace_page *page)
{
    uint32_t count = atomic_load_explicit(&page->header.comms, memory_order_relaxed);

    return count < TRACE_COMMS ? count : TRACE_COMMS;
}

/* Names come from a file that anybody may have written: they end, and no sign of theirs means
 * something in JSON or to a terminal. */
static void clean(char *text, size_t size)
{
    text[size - 1] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\' || *text == 127)
            *text = '?';
}

/* Private, as clean() writes into it. */
static bool map(const char *path, struct traced_file *ret_file)
{
    struct stat status;
    struct trace_page *page = MAP_FAILED;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes;

    if (file < 0)
        return false;
    if (!fstat(file, &status) && S_ISREG(status.st_mode) &&
        (size_t)status.st_size >= sizeof(struct trace_page))
        page = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (page == MAP_FAILED)
        return false;
    bytes = (size_t)status.st_size;
    if (page->header.magic != TRACE_MAGIC || page->header.version != TRACE_VERSION ||
        page->header.room > (bytes - sizeof(*page)) / sizeof(struct trace_event)) {
        munmap(page, bytes);
        return false;
    }
    clean(page->header.host, sizeof(page->header.host));
    clean(page->header.program, sizeof(page->header.program));
    for (int i = 0; i < TRACE_NAMES; i++) {
        clean(page->name[i], TRACE_NAME);
        clean(page->sum[i].algorithm, sizeof(page->sum[i].algorithm));
    }
    *ret_file = (struct traced_file){.page = page, .mapped = bytes};
    snprintf(ret_file->path, sizeof(ret_file->path), "%s", path);
    return true;
}

static bool share_a_communicator(const struct trace_page *a, const struct trace_page *b)
{
    for (uint32_t i = 0; i < comms_of(a); i++)
        for (uint32_t j = 0; j < comms_of(b); j++)
            if (a->comm[i].id == b->comm[j].id)
                return true;
    return false;
}

static void swap(struct traced_file *a, struct traced_file *b)
{
    struct traced_file kept = *a;

    *a = *b;
    *b = kept;
}

/* Keeps the job of the file that was made last: files which are connected by communicators. Files
 * of earlier jobs with more ranks lie beside it. */
static void keep_last_job(struct traced *traced)
{
    struct traced_file *files = traced->files;
    int kept = 1, newest = 0;

    for (int i = 1; i < traced->file_count; i++)
        if (files[i].page->header.opened > files[newest].page->header.opened)
            newest = i;
    swap(&files[0], &files[newest]);
    for (int from = 0; from < kept; from++)
        for (int i = kept; i < traced->file_count; i++)
            if (share_a_communicator(files[from].page, files[i].page))
                swap(&files[kept++], &files[i]);
    for (int i = kept; i < traced->file_count; i++)
        munmap(files[i].page, files[i].mapped);
    traced->left_out = traced->file_count - kept;
    traced->file_count = kept;
}

static int by_rank(const void *a, const void *b)
{
    const struct traced_file *one = a, *other = b;
    int difference = traced_rank(one) - traced_rank(other);

    return difference ? difference : one->page->header.pid - other->page->header.pid;
}

/* ---- Events ---------------------------------------------------------------------------------- */

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

/* The calls of one communicator in one file: entry i is the number, from 1, of its call `first` +
 * i; 0: it is not known. */
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

/* An event that was half written when the process ended may make none. */
static bool makes_sense(const struct trace_page *page, const struct trace_event *event,
                        const struct numbers *numbers)
{
    if (event->comm >= comms_of(page) || event->kind >= TRACE_KINDS ||
        event->program >= PLAN_PROGRAMS_MAX)
        return false;
    numbers += event->comm;
    return event->kind != TRACE_BEGIN || !numbers->count ||
           event->call - numbers->first <= page->header.room;
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
    numbers += event->comm;
    if (event->kind == TRACE_BEGIN)
        return begin_call(traced, file, event, numbers);
    number = number_of(numbers, event->call, false);
    if (!number || !*number) {
        traced->files[file].lost++;
        return true;
    }
    if (event->kind == TRACE_STEP)
        return add_step(traced, event, *number - 1);
    traced->calls[*number - 1].end = 1e-9 * (double)event->when;
    traced->calls[*number - 1].ended = true;
    return true;
}

static bool take_all(struct traced *traced, int file)
{
    const struct trace_page *page = traced->files[file].page;
    uint64_t taken = atomic_load_explicit(&page->header.taken, memory_order_relaxed);
    uint64_t oldest = taken > page->header.room ? taken - page->header.room : 0;
    struct numbers *numbers = calloc(TRACE_COMMS, sizeof(*numbers));
    bool good = numbers != NULL;

    traced->files[file].lost = oldest;
    for (uint64_t i = oldest; i < taken && good; i++)
        good = take(traced, file, &page->events[i % page->header.room], numbers);
    for (int i = 0; i < TRACE_COMMS && numbers; i++)
        free(numbers[i].at);
    free(numbers);
    return good;
}

bool traced_read(const char *file, struct traced *ret_traced)
{
    char pattern[512];
    glob_t found = {0};
    bool good = true;

    *ret_traced = (struct traced){0};
    snprintf(pattern, sizeof(pattern), "%s.*", file);
    if (!glob(pattern, 0, NULL, &found))
        ret_traced->files = calloc(found.gl_pathc, sizeof(*ret_traced->files));
    for (size_t i = 0; i < found.gl_pathc && ret_traced->files; i++)
        ret_traced->file_count +=
            map(found.gl_pathv[i], &ret_traced->files[ret_traced->file_count]);
    globfree(&found);
    if (!ret_traced->file_count) {
        fprintf(stderr,
                "rondo trace: no file %s.RANK is a trace; run the job with RONDO_TRACE=%s or "
                "RONDO_PROFILE=%s\n",
                file, file, file);
        return false;
    }
    keep_last_job(ret_traced);
    qsort(ret_traced->files, (size_t)ret_traced->file_count, sizeof(*ret_traced->files), by_rank);
    for (int i = 0; i < ret_traced->file_count && good; i++)
        good = take_all(ret_traced, i);
    if (!good)
        fprintf(stderr, "rondo trace: not enough memory for the trace\n");
    return good;
}

void traced_done(struct traced *traced)
{
    for (int i = 0; i < traced->file_count; i++)
        munmap(traced->files[i].page, traced->files[i].mapped);
    free(traced->files);
    free(traced->calls);
    free(traced->steps);
    free(traced->spans);
}
