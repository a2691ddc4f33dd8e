/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - streams as queues: the engine under the functions of stream.c.
 *
 * A point of a stream is the number of operations that were put into it so far; it is reached when
 * as many are done. All functions are called under the lock unless they say otherwise.
 */
#pragma once

#include "standin/driver/op.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct capture;
struct channel;
struct queued;

struct CUstream_st {
    struct CUstream_st *next; /* in its context */
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id;
    uint64_t owner; /* per-thread stream: of which thread; else 0 */
    bool destroyed; /* the handle is gone, the work goes on */
    unsigned references;
    bool running; /* a thread of the pool is at it */
    struct queued *first, **last;
    uint64_t issued, done;
    unsigned channel_number;
    struct channel *channel; /* that of the number */
    pthread_cond_t progress; /* `done` grew */
    unsigned waiters;
    struct capture *capture; /* what it is captured into, or NULL */
    CUgraphNode *tails;      /* capture: the next operation depends on these */
    size_t tails_count;
};

struct point {
    CUstream stream;
    uint64_t number;
};

/* A new stream in the context, with one reference (its handle); NULL when memory is out. */
CUstream queue_open(CUcontext context, unsigned flags, int priority);

/* The stream behind a handle of the API, as seen from the context, or NULL. */
CUstream queue_find(CUcontext context, CUstream handle);

/* Gives up the handle: the work that is queued goes on. */
void queue_close(CUstream stream);

/* Takes over the reference of `op` and puts it into the queue, behind what CUDA's rules for the
 * legacy stream put before it. False when memory is out. */
bool queue_put(CUstream stream, struct op *op);

/* All that comes into the queue later waits for the point, which may be of any stream. */
bool queue_put_after(CUstream stream, struct point point);

/* The point that what was put so far leads to; the reference keeps the stream's memory until
 * queue_forget(). */
struct point queue_point(CUstream stream);
void queue_forget(struct point point);

bool queue_reached(struct point point);

/* Sleeps until it is reached (the lock is given up meanwhile). */
void queue_wait(struct point point);

/* Sleeps until all that is in the stream by now is done; for the legacy stream that includes the
 * blocking ones. */
void queue_drain(CUstream stream);
bool queue_idle(CUstream stream);

/* Sleeps until all that is in the streams of the context by now is done. */
void queue_drain_context(CUcontext context);
