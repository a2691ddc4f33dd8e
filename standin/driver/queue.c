/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - a stream is a list of operations; a thread of the pool works at it while there is any.
 *
 * Order between streams is made of points (see queue.h): "wait for point p" is an operation too.
 * The legacy stream's rule is made of them at the time of the call: its operation first waits for
 * the points of all blocking streams of the context, and the operation of a blocking stream first
 * waits for the legacy stream's point. A wait is only ever for what was put in earlier, so the
 * streams of a context can't wait for each other in a circle.
 */
#include "standin/driver/queue.h"

#include "standin/driver/base/call.h"
#include "standin/driver/channel.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"
#include "standin/driver/pause.h"
#include "standin/driver/pool.h"

#include <stdlib.h>

struct queued {
    struct queued *next;
    struct op *op;
    struct ticket ticket; /* in the stream's channel */
};

struct after {
    struct op op;
    struct point point;
};

static _Thread_local uint64_t this_thread; /* its number, once it has asked for its own stream */

static void reference(CUstream stream)
{
    stream->references++;
}

static void unreference(CUstream stream)
{
    if (--stream->references)
        return;
    CUstream *link = &stream->context->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_cond_destroy(&stream->progress);
    free(stream->tails);
    free(stream);
}

CUstream queue_open(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = call_unique();
    stream->channel_number = channel_choose(&context->channels, priority);
    stream->channel = channel_get(&context->channels, priority, stream->channel_number);
    stream->references = 1;
    stream->last = &stream->first;
    pthread_cond_init(&stream->progress, NULL);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void queue_close(CUstream stream)
{
    stream->destroyed = true;
    unreference(stream);
}

static CUstream per_thread(CUcontext context)
{
    if (!this_thread)
        this_thread = call_unique();
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        if (stream->owner == this_thread)
            return stream;
    }
    CUstream stream = queue_open(context, CU_STREAM_DEFAULT, 0);
    if (stream)
        stream->owner = this_thread;
    return stream;
}

CUstream queue_find(CUcontext context, CUstream handle)
{
    if (!handle || handle == CU_STREAM_LEGACY)
        return context->legacy;
    if (handle == CU_STREAM_PER_THREAD)
        return per_thread(context);
    return context_stream(handle) ? handle : NULL;
}

/* True if it reads or writes device memory, without a word about where. */
static bool touches(const struct op *op)
{
    switch (op->kind->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return true;
    default:
        return false;
    }
}

/* For the guard: the operation's memory is in use from now on, or no longer. */
static void use(const struct op *op, bool begins)
{
    if (op->kind->places)
        op->kind->places(op, begins ? memory_begin_use_of : memory_end_use_of);
    else if (touches(op))
        begins ? memory_begin_use() : memory_end_use();
}

/* Runs the operation when the stream's channel has come to it. Under the lock, which it gives up
 * meanwhile. */
static void pass(CUstream stream, const struct queued *queued)
{
    struct op *op = queued->op;
    enum op_passage passage = op_passage(op);
    if (passage != OP_JOINS)
        channel_await(stream->channel, &queued->ticket);
    pause_begin(op);
    if (passage == OP_GOES)
        channel_leave(stream->channel);
    use(op, true);
    call_unlock();
    op->kind->run(op);
    call_lock();
    use(op, false);
    pause_end(op);
    if (passage == OP_JOINS)
        channel_await(stream->channel, &queued->ticket);
    if (passage != OP_GOES)
        channel_leave(stream->channel);
}

/* The thread that works at the stream. It holds a reference of it. */
static void work(void *argument)
{
    CUstream stream = argument;
    call_lock();
    while (stream->first) {
        struct queued *queued = stream->first;
        stream->first = queued->next;
        if (!stream->first)
            stream->last = &stream->first;
        pass(stream, queued);
        call_unlock();
        op_release(queued->op);
        free(queued);
        call_lock();
        stream->done++;
        if (stream->waiters)
            pthread_cond_broadcast(&stream->progress);
    }
    stream->running = false;
    unreference(stream);
    call_unlock();
}

static bool put(CUstream stream, struct op *op)
{
    struct queued *queued = calloc(1, sizeof *queued);
    if (!queued)
        return false;
    queued->op = op;
    if (op->kind->enter)
        op->kind->enter(op, stream);
    channel_enter(stream->channel, &queued->ticket);
    *stream->last = queued;
    stream->last = &queued->next;
    stream->issued++;
    if (!stream->running) {
        stream->running = true;
        reference(stream);
        pool_run(work, stream);
    }
    return true;
}

static void run_after(struct op *op)
{
    call_lock();
    queue_wait(((struct after *)op)->point);
    call_unlock();
}

static void close_after(struct op *op)
{
    call_lock();
    queue_forget(((struct after *)op)->point);
    call_unlock();
}

static const struct op_kind after_kind = {CU_GRAPH_NODE_TYPE_EMPTY, run_after, close_after, NULL,
                                          NULL};

bool queue_put_after(CUstream stream, struct point point)
{
    if (point.stream == stream || queue_reached(point))
        return true;
    struct after *after = op_new(sizeof *after, &after_kind);
    if (!after)
        return false;
    after->point = point;
    reference(point.stream);
    if (put(stream, &after->op))
        return true;
    unreference(point.stream);
    free(after);
    return false;
}

static bool is_blocking(CUstream stream)
{
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

bool queue_put(CUstream stream, struct op *op)
{
    CUstream legacy = stream->context->legacy;
    bool ordered = true;
    if (stream == legacy) {
        for (CUstream other = stream->context->streams; other && ordered; other = other->next) {
            if (is_blocking(other))
                ordered = queue_put_after(stream, (struct point){other, other->issued});
        }
    } else if (is_blocking(stream) && legacy) {
        ordered = queue_put_after(stream, (struct point){legacy, legacy->issued});
    }
    return ordered && put(stream, op);
}

struct point queue_point(CUstream stream)
{
    reference(stream);
    return (struct point){stream, stream->issued};
}

void queue_forget(struct point point)
{
    if (point.stream)
        unreference(point.stream);
}

bool queue_reached(struct point point)
{
    return !point.stream || point.stream->done >= point.number;
}

void queue_wait(struct point point)
{
    if (queue_reached(point))
        return;
    CUstream stream = point.stream;
    reference(stream);
    stream->waiters++;
    while (!queue_reached(point))
        call_wait(&stream->progress);
    stream->waiters--;
    unreference(stream);
}

/* The points of all streams of the context that have work; NULL when there are none, or no
 * memory to list them. */
static struct point *busy_points(CUcontext context, bool only_blocking, size_t *ret_count)
{
    size_t count = 0, filled = 0;
    for (CUstream stream = context->streams; stream; stream = stream->next)
        count++;
    struct point *points = calloc(count ? count : 1, sizeof *points);
    for (CUstream stream = context->streams; points && stream; stream = stream->next) {
        if (stream->issued > stream->done && (!only_blocking || is_blocking(stream)))
            points[filled++] = queue_point(stream);
    }
    *ret_count = filled;
    return points;
}

static void wait_for_all(CUcontext context, bool only_blocking)
{
    size_t count = 0;
    struct point *points = busy_points(context, only_blocking, &count);
    for (size_t i = 0; i < count; i++) {
        queue_wait(points[i]);
        queue_forget(points[i]);
    }
    free(points);
}

void queue_drain_context(CUcontext context)
{
    wait_for_all(context, false);
}

void queue_drain(CUstream stream)
{
    if (stream == stream->context->legacy) {
        wait_for_all(stream->context, true);
    } else {
        queue_wait((struct point){stream, stream->issued});
    }
}

bool queue_idle(CUstream stream)
{
    bool legacy = stream == stream->context->legacy;
    for (CUstream other = stream->context->streams; other; other = other->next) {
        bool counts = other == stream || (legacy && is_blocking(other));
        if (counts && other->issued > other->done)
            return false;
    }
    return true;
}
