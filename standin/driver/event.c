/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - events: marks in streams.
 *
 * Recording makes a new record and puts an operation into the stream that completes it. Whoever
 * waits for the event waits for the record that is the latest at that time, and keeps to it when
 * the event is recorded again. An event that processes share has numbers in a shared page instead
 * of records.
 */
#include "standin/driver/event.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/poll.h"
#include "standin/driver/context.h"
#include "standin/driver/external.h"
#include "standin/driver/stream.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct record_op {
    struct op op;
    struct record *record;
    struct event_page *page; /* shared: number takes the place of the record */
    uint64_t number;
};

static CUevent events;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void event_release(struct record *record)
{
    if (!record || --record->references)
        return;
    pthread_cond_destroy(&record->over);
    free(record);
}

CUevent event_find(CUevent handle)
{
    CUevent event = events;
    while (event && event != handle)
        event = event->next;
    return event;
}

CUevent event_open(CUcontext context, unsigned flags)
{
    CUevent event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    *event = (struct CUevent_st){.next = events, .context = context, .flags = flags, .fd = -1};
    event->id = call_unique();
    events = event;
    return event;
}

/* call_enter(), then the event; on success the lock is held. */
static CUresult enter(const char *function, CUevent handle, CUevent *ret_event)
{
    CUcontext context = NULL;
    CUresult result = context_enter(function, &context);
    if (result)
        return result;
    call_lock();
    *ret_event = event_find(handle);
    if (*ret_event)
        return CUDA_SUCCESS;
    call_unlock();
    return CUDA_ERROR_INVALID_HANDLE;
}

static void forget_capture(CUevent event)
{
    capture_unreference(event->capture);
    event->capture = NULL;
    free(event->nodes);
    event->nodes = NULL;
}

/* Shared pages stay mapped: operations under way may still need them. */
static void close_event(CUevent event)
{
    CUevent *link = &events;
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    forget_capture(event);
    event_release(event->latest);
    if (event->fd >= 0)
        close(event->fd);
    free(event);
}

void event_close_all(CUcontext context)
{
    for (CUevent event = events, next; event; event = next) {
        next = event->next;
        if (event->context == context)
            close_event(event);
    }
}

void event_complete(struct record *record)
{
    record->done = true;
    record->time = now();
    pthread_cond_broadcast(&record->over);
}

void event_await(struct record *record)
{
    while (!record->done)
        call_wait(&record->over);
}

static void run_record(struct op *op)
{
    const struct record_op *mark = (struct record_op *)op;
    if (mark->page) {
        /* Release, pairs with the acquire in shared_reached(): what was done before the record
         * is seen after it. */
        atomic_store_explicit(&mark->page->reached[mark->number % EVENT_RECORDS], mark->number,
                              memory_order_release);
        return;
    }
    call_lock();
    event_complete(mark->record);
    call_unlock();
}

static void close_record(struct op *op)
{
    call_lock();
    event_release(((struct record_op *)op)->record);
    call_unlock();
}

static const struct op_kind record_kind = {CU_GRAPH_NODE_TYPE_EVENT_RECORD, run_record,
                                           close_record, NULL, NULL};

static struct record *new_record(void)
{
    struct record *record = calloc(1, sizeof *record);
    if (record) {
        record->references = 1;
        pthread_cond_init(&record->over, NULL);
    }
    return record;
}

struct record *event_latest(CUevent event)
{
    if (event->latest)
        event->latest->references++;
    return event->latest;
}

static void forget_latest(CUevent event, struct record *record)
{
    event_release(event->latest);
    event->latest = record;
    record->references++;
    forget_capture(event);
}

struct record *event_record_anew(CUevent event)
{
    struct record *record = event->page ? NULL : new_record();
    if (record)
        forget_latest(event, record);
    return record;
}

/* The event stands for what was put into the stream so far. Under the lock, which it gives up. */
static CUresult record(CUevent event, CUstream stream)
{
    struct record *record = event->page ? NULL : new_record();
    struct record_op *mark = op_new(sizeof *mark, &record_kind);
    if (!mark || (!record && !event->page)) {
        event_release(record);
        call_unlock();
        op_release(mark ? &mark->op : NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mark->record = record;
    mark->page = event->page;
    if (event->page)
        mark->number = 1 + atomic_fetch_add_explicit(&event->page->issued, 1, memory_order_relaxed);
    if (record)
        forget_latest(event, record);
    forget_capture(event);
    return stream_submit(stream, &mark->op);
}

static CUresult record_captured(CUevent event, CUstream stream)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode *nodes = capture_nodes(stream->tails, stream->tails_count);
    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    forget_capture(event);
    event->nodes = nodes;
    event->nodes_count = stream->tails_count;
    event->capture = stream->capture;
    capture_reference(event->capture);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *ret_event, unsigned flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    bool shared = flags & CU_EVENT_INTERPROCESS;
    if (!ret_event || flags & ~known || (shared && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    CUevent event = event_open(context, flags);
    if (event && shared && !event_share(event)) {
        close_event(event);
        event = NULL;
    }
    call_unlock();
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_event = event;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle)
{
    CUevent event = NULL;
    CUresult result = enter(__func__, handle, &event);
    if (result)
        return result;
    close_event(event);
    call_unlock();
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags)
{
    CUstream stream = NULL;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_enter(__func__, stream_handle, &stream);
    if (result)
        return result;
    CUevent event = event_find(handle);
    if (!event || event->context != stream->context) {
        call_unlock();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!capture_active(stream))
        return record(event, stream);
    if (flags && !event->page)
        return stream_submit(stream, external_record(event));
    result = flags ? CUDA_ERROR_NOT_SUPPORTED : record_captured(event, stream);
    call_unlock();
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

static bool shared_reached(struct event_page *page, uint64_t number)
{
    /* Acquire, pairs with the release in run_record(). */
    return atomic_load_explicit(&page->reached[number % EVENT_RECORDS], memory_order_acquire) >=
           number;
}

static uint64_t shared_latest(struct event_page *page)
{
    return atomic_load_explicit(&page->issued, memory_order_relaxed);
}

struct wait_op {
    struct op op;
    struct record *record;
    struct event_page *page;
    uint64_t number;
};

static void run_wait(struct op *op)
{
    struct wait_op *wait = (struct wait_op *)op;
    if (wait->page) {
        for (struct poll poll = {0}; !shared_reached(wait->page, wait->number);)
            poll_pause(&poll);
        return;
    }
    call_lock();
    event_await(wait->record);
    call_unlock();
}

static void close_wait(struct op *op)
{
    call_lock();
    event_release(((struct wait_op *)op)->record);
    call_unlock();
}

static const struct op_kind wait_kind = {CU_GRAPH_NODE_TYPE_WAIT_EVENT, run_wait, close_wait, NULL,
                                         NULL};

/* True if all that the event stands for has been done. */
static bool is_reached(CUevent event)
{
    if (event->page)
        return shared_reached(event->page, shared_latest(event->page));
    return !event->latest || event->latest->done;
}

/* Under the lock, which it gives up. */
static CUresult wait_in(CUstream stream, CUevent event)
{
    struct wait_op *wait = op_new(sizeof *wait, &wait_kind);
    if (wait && event->page) {
        wait->page = event->page;
        wait->number = shared_latest(event->page);
    } else if (wait) {
        wait->record = event->latest;
        wait->record->references++;
    }
    return stream_submit(stream, wait ? &wait->op : NULL);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, stream_handle, &stream);
    if (result)
        return result;
    CUevent event = event_find(handle);
    bool waits = false;
    bool external = flags & CU_EVENT_WAIT_EXTERNAL && capture_active(stream);
    if (event && external && !event->page)
        return stream_submit(stream, external_wait(event));
    if (!event || external) {
        result = event ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
    } else if (event->capture) {
        result = capture_join(stream, event->capture, event->nodes, event->nodes_count);
    } else if (capture_active(stream) && !event->page && event->latest) {
        stream->capture->invalid = true; /* it would wait for work that is not in the graph */
        result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else {
        waits = !is_reached(event);
    }
    if (waits)
        return wait_in(stream, event);
    call_unlock();
    return result;
}

/* Common to those that ask for an event's state: on success the lock is held. */
static CUresult enter_query(const char *function, CUevent handle, CUevent *ret_event)
{
    CUresult result = enter(function, handle, ret_event);
    if (result)
        return result;
    result = capture_forbid();
    if (!result && (*ret_event)->capture)
        result = CUDA_ERROR_CAPTURED_EVENT;
    if (result)
        call_unlock();
    return result;
}

CUresult cuEventQuery(CUevent handle)
{
    CUevent event = NULL;
    CUresult result = enter_query(__func__, handle, &event);
    if (result)
        return result;
    bool reached = is_reached(event);
    call_unlock();
    return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle)
{
    CUevent event = NULL;
    CUresult result = enter_query(__func__, handle, &event);
    if (result)
        return result;
    struct event_page *page = event->page;
    struct record *record = event->latest;
    if (record) {
        record->references++;
        event_await(record);
        event_release(record);
    }
    uint64_t number = page ? shared_latest(page) : 0;
    call_unlock();
    for (struct poll poll = {0}; page && !shared_reached(page, number);)
        poll_pause(&poll);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first_handle, CUevent second_handle)
{
    CUevent first = NULL;
    CUresult result = enter_query(__func__, first_handle, &first);
    if (result)
        return result;
    CUevent second = event_find(second_handle);
    if (!milliseconds)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!second || !first->latest || !second->latest || first->context != second->context ||
             (first->flags | second->flags) & CU_EVENT_DISABLE_TIMING)
        result = CUDA_ERROR_INVALID_HANDLE;
    else if (!first->latest->done || !second->latest->done)
        result = CUDA_ERROR_NOT_READY;
    else
        *milliseconds = (float)(second->latest->time - first->latest->time) * 1e-6F;
    call_unlock();
    return result;
}

/* Drivers offer the first version, of the same parameters, as well. */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second);
CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second)
{
    return cuEventElapsedTime_v2(milliseconds, first, second);
}
