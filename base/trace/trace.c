/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.c - see trace.h. */
#include "base/trace/trace.h"

#include "rondo/bindings.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mapped.h"
#include "base/setting.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct lock lock = LOCK_AT(LOCK_TRACE);
FORK_RENEWS({.lock = &lock});
/* The page is that of this process, or of the one that forked it; NULL: nothing is traced so
 * far. */
static _Atomic(struct trace_page *) page_now;
static _Atomic uint32_t home; /* of the process that made it: fork_home() */
static bool failed;           /* it could not be made, which is said once; under the lock */

/* Returns NULL if this process has none. Acquire, pairs with the release in trace_open(): the page
 * is complete. */
static struct trace_page *own_page(void)
{
    struct trace_page *page = atomic_load_explicit(&page_now, memory_order_acquire);

    return page && !fork_is_foreign(atomic_load_explicit(&home, memory_order_relaxed)) ? page
                                                                                       : NULL;
}

/* Else calls are only added up, if anything is asked for at all. */
static bool traces_events(void)
{
    return setting_is_set(SETTING_TRACE);
}

/* A child that has its parent's environment is another process, also by its name. */
static void name_file(char path[PATH_MAX])
{
    const char *file = setting_read_word(traces_events() ? SETTING_TRACE : SETTING_PROFILE);
    int rank = log_rank();

    if (rank < 0 || atomic_load_explicit(&page_now, memory_order_relaxed))
        snprintf(path, PATH_MAX, "%s.process-%d", file, (int)getpid());
    else
        snprintf(path, PATH_MAX, "%s.%d", file, rank);
}

static struct trace_page *make_page(uint64_t machine)
{
    size_t bytes = 0, size, room;
    struct trace_page *made;
    char path[PATH_MAX];

    if (traces_events() && setting_read_size(SETTING_TRACE_BYTES, &bytes)) {
        log_warn("calls are not traced: %s", fail_sentence());
        return NULL;
    }
    room = bytes / sizeof(struct trace_event) / TRACE_PIECE * TRACE_PIECE;
    if (traces_events() && setting_is_set(SETTING_PROFILE))
        log_warn("RONDO_PROFILE is not used beside RONDO_TRACE, whose file has the same sums");
    name_file(path);
    size = sizeof(*made) + room * sizeof(struct trace_event);
    unlink(path); /* of an earlier job */
    made = mapped_create(AT_FDCWD, path, 0666, size);
    if (!made) {
        log_warn("calls are not traced: %s cannot be written: %s", path, strerror(errno));
        return NULL;
    }
    made->header.version = TRACE_VERSION;
    made->header.room = (uint32_t)room;
    made->header.pid = getpid();
    made->header.rank = log_rank();
    made->header.machine = machine;
    made->header.opened = clock_nanoseconds();
    gethostname(made->header.host, sizeof(made->header.host) - 1);
    snprintf(made->header.program, sizeof(made->header.program), "%s",
             program_invocation_short_name);
    snprintf(made->name[0], TRACE_NAME, "a call");
    atomic_store_explicit(&made->header.names, 1, memory_order_relaxed);
    /* Readers that come too soon find no magic. */
    atomic_thread_fence(memory_order_release);
    made->header.magic = TRACE_MAGIC;
    return made;
}

struct trace *trace_open(uint64_t comm, int rank, int size, uint64_t machine)
{
    struct trace_page *page;
    struct trace *trace;
    uint32_t number;

    if (!traces_events() && !setting_is_set(SETTING_PROFILE))
        return NULL;
    trace = calloc(1, sizeof(*trace));
    if (!trace)
        return NULL;
    lock_take(&lock);
    page = own_page();
    if (!page && !failed) {
        page = make_page(machine);
        failed = !page;
        atomic_store_explicit(&home, fork_home(), memory_order_relaxed);
        atomic_store_explicit(&page_now, page, memory_order_release);
    }
    lock_give(&lock);
    if (!page) {
        free(trace);
        return NULL;
    }
    trace->page = page;
    number = atomic_fetch_add_explicit(&page->header.comms, 1, memory_order_relaxed);
    if (number >= TRACE_COMMS) {
        atomic_store_explicit(&page->header.comms, TRACE_COMMS, memory_order_relaxed);
        log_info("a communicator is not traced: its process has had %d already", TRACE_COMMS);
        free(trace);
        return NULL;
    }
    page->comm[number] = (struct trace_comm){.id = comm, .rank = rank, .size = size};
    trace->comm = (uint16_t)number;
    return trace;
}

struct trace *trace_open_beside(const struct trace *trace)
{
    struct trace *beside = calloc(1, sizeof(*beside));

    if (beside)
        *beside = (struct trace){.page = trace->page, .comm = trace->comm};
    return beside;
}

void trace_close(struct trace *trace)
{
    free(trace);
}

/* The lock is held. */
static uint32_t number_of_name(struct trace_page *page, const char *name)
{
    uint32_t count = atomic_load_explicit(&page->header.names, memory_order_relaxed);

    for (uint32_t i = 1; i < count; i++)
        if (!strncmp(page->name[i], name, TRACE_NAME - 1))
            return i;
    if (count == TRACE_NAMES)
        return 0;
    snprintf(page->name[count], TRACE_NAME, "%s", name);
    /* Release: who sees the number reads the name. */
    atomic_store_explicit(&page->header.names, count + 1, memory_order_release);
    return count;
}

uint32_t trace_name(struct trace *trace, const char *name)
{
    uint32_t number;

    lock_take(&lock);
    number = number_of_name(trace->page, name);
    lock_give(&lock);
    return number;
}

bool trace_is_described(struct trace *trace, uint32_t name)
{
    bool is;

    lock_take(&lock);
    is = !name || trace->page->sum[name].algorithm[0];
    lock_give(&lock);
    return is;
}

void trace_describe(struct trace *trace, uint32_t name, const struct trace_sum *what)
{
    struct trace_sum *sum = &trace->page->sum[name];

    lock_take(&lock);
    sum->count = what->count;
    sum->predicted = what->predicted;
    sum->collective = what->collective;
    sum->type = what->type;
    memcpy(sum->algorithm, what->algorithm, sizeof(sum->algorithm));
    lock_give(&lock);
}

void trace_add_up(struct trace *trace, uint32_t name, uint64_t nanoseconds)
{
    struct trace_sum *sum = &trace->page->sum[name];
    uint64_t shortest = atomic_load_explicit(&sum->shortest, memory_order_relaxed);
    uint64_t longest = atomic_load_explicit(&sum->longest, memory_order_relaxed);

    atomic_fetch_add_explicit(&sum->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->nanoseconds, nanoseconds, memory_order_relaxed);
    while ((!shortest || nanoseconds < shortest) &&
           !atomic_compare_exchange_weak_explicit(&sum->shortest, &shortest, nanoseconds,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    while (nanoseconds > longest &&
           !atomic_compare_exchange_weak_explicit(&sum->longest, &longest, nanoseconds,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void trace_take_piece(struct trace *trace)
{
    struct trace_header *header = &trace->page->header;
    uint64_t first = atomic_fetch_add_explicit(&header->taken, TRACE_PIECE, memory_order_relaxed);

    trace->next = &trace->page->events[first % header->room];
    trace->end = trace->next + TRACE_PIECE;
    /* A communicator that is quiet for long gives the rest of its piece up before the ring has come
     * round to it; half a ring is far more than others take while one event is written. */
    trace->expires = first + header->room / 2;
    memset(trace->next, 0, TRACE_PIECE * sizeof(*trace->next));
}

/* The program's own spans, of all threads, are written as if they were a communicator's. */
static void add_span(enum trace_kind kind, const char *name, unsigned number)
{
    static struct trace spans;
    struct trace_page *page = own_page();
    struct trace_event event = {.kind = (uint8_t)kind, .when = clock_nanoseconds()};

    if (!page || !page->header.room || !name)
        return;
    lock_take(&lock);
    if (spans.page != page)
        spans = (struct trace){.page = page};
    event.of.begun.name = number_of_name(page, name);
    event.of.begun.number = number;
    trace_add(&spans, event);
    lock_give(&lock);
}

void rondo_trace_begin(const char *name, unsigned number)
{
    add_span(TRACE_SPAN, name, number);
}

void rondo_trace_end(const char *name, unsigned number)
{
    add_span(TRACE_SPAN_END, name, number);
}
