/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - what a stream is to the calls that go on it: a queue that does jobs in order. */
#ifndef RONDO_COMM_ENGINE_STREAM_H
#define RONDO_COMM_ENGINE_STREAM_H

#include "comm/engine/run.h"

struct stream_ops {
    /* Queue batches (comm, tasks, count are set) that run side by side; all of it is copied. */
    rondo_result (*add_batches)(rondo_stream *stream, const struct batch *batches, int count);
    /* True if add_batches() waits until ranks of this process have queued their part of a call. A
     * group with calls of several of them then has a thread for each stream. NULL: never. */
    bool (*waits_for_others)(const rondo_stream *stream, const rondo_comm *comm);
    rondo_result (*call)(rondo_stream *stream, rondo_stream_function function, void *context);
    rondo_result (*synchronize)(rondo_stream *stream);
    rondo_result (*query)(rondo_stream *stream);
    /* True if what is queued goes into a graph, which may run any number of times. NULL: never. */
    bool (*captures)(const rondo_stream *stream);
    /* Points are places on a stream that its kind knows by itself: streams of the same kind await
     * them without a function on either. All three are NULL where a kind has none; a point may be
     * dropped before it is reached, but not by a function on a stream. */
    rondo_result (*make_point)(rondo_stream *stream, void **ret_point);
    rondo_result (*await_point)(rondo_stream *stream, void *point);
    void (*drop_point)(void *point);
    void (*close)(rondo_stream *stream);
};

/* Returns the result of the last call, or group of calls, that this thread has run for its stream,
 * with its sentence, which is valid until the next one; RONDO_OK in other threads. */
rondo_result stream_outcome(const char **ret_sentence);

/* Orders what `stream` (NULL: this thread) does from now on after what `earlier` has got so far.
 * Where both are of a kind that has points this goes into graphs, too. */
rondo_result stream_follow(rondo_stream *stream, rondo_stream *earlier);

/*
 * Waits until calls that are queued on streams with threads don't use [memory, memory + bytes) any
 * more. RONDO_ERROR_INVALID, with a sentence about `function`, if the calling thread is the one
 * that has to run such a call.
 */
rondo_result streams_let_go(const void *memory, size_t bytes, const char *function);

struct rondo_stream {
    const struct stream_ops *ops; /* first member of what a kind of stream keeps */
    uint32_t home;                /* of the process whose thread it has: fork_home() */
};

#endif
