/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_thread.c - calls in the background: a queue of jobs and one thread that does them in
 * order.
 *
 * A batch takes its turn on the communicator when it is queued, so the order of calls is the order
 * in which they were made, whichever thread runs them.
 */
#include "comm/engine/call.h"
#include "comm/engine/run.h"
#include "comm/engine/stream.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "base/lock.h"
#include "base/spare.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct job *next;
    rondo_stream_function function; /* NULL: the batches are run */
    void *context;
    struct batch *batches; /* behind the tasks */
    int count;
    struct task tasks[];
};

struct thread_stream {
    rondo_stream base;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t changed;
    struct job *first, **last;
    struct spares jobs; /* that were done */
    bool closing, busy;
    rondo_result error; /* the first since the last synchronize */
    char sentence[FAIL_SENTENCE_MAX];
};

/* A thread of a stream keeps the result of the call that it has run last. */
static _Thread_local struct {
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
} outcome;

rondo_result stream_outcome(const char **ret_sentence)
{
    *ret_sentence = outcome.sentence;
    return outcome.result;
}

static struct job *next_job(struct thread_stream *stream)
{
    struct job *job;

    lock_take(&stream->lock);
    stream->busy = false;
    pthread_cond_broadcast(&stream->changed);
    while (!stream->first && !stream->closing)
        lock_wait(&stream->lock, &stream->changed);
    job = stream->first;
    if (job) {
        stream->first = job->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->busy = true;
    }
    lock_give(&stream->lock);
    return job;
}

static void note_error(struct thread_stream *stream, rondo_result result)
{
    lock_take(&stream->lock);
    if (!stream->error) {
        stream->error = result;
        memcpy(stream->sentence, fail_sentence(), strlen(fail_sentence()) + 1);
    }
    lock_give(&stream->lock);
}

static void do_job(struct thread_stream *stream, struct job *job)
{
    rondo_result result = RONDO_OK;

    if (job->function)
        job->function(job->context);
    else
        outcome.result = result = run_by_backend(job->batches, job->count);
    if (result) {
        memcpy(outcome.sentence, fail_sentence(), strlen(fail_sentence()) + 1);
        note_error(stream, result);
    }
    lock_take(&stream->lock);
    spare_give(&stream->jobs, job);
    lock_give(&stream->lock);
}

static void *work(void *argument)
{
    struct thread_stream *stream = argument;
    struct job *job;

    while ((job = next_job(stream)))
        do_job(stream, job);
    return NULL;
}

/* A job with room for that many bytes behind it; NULL: out of memory. */
static struct job *take_job(struct thread_stream *stream, size_t bytes)
{
    struct job *job;

    lock_take(&stream->lock);
    job = spare_take(&stream->jobs, sizeof(*job) + bytes);
    lock_give(&stream->lock);
    return job;
}

static void push(struct thread_stream *stream, struct job *job)
{
    job->next = NULL;
    lock_take(&stream->lock);
    *stream->last = job;
    stream->last = &job->next;
    pthread_cond_broadcast(&stream->changed);
    lock_give(&stream->lock);
}

static rondo_result add_batches(rondo_stream *base, const struct batch *batches, int count)
{
    struct thread_stream *stream = (struct thread_stream *)base;
    struct job *job;
    struct task *tasks;
    size_t all = 0;

    for (int i = 0; i < count; i++)
        all += (size_t)batches[i].count;
    job = take_job(stream, all * sizeof(*tasks) + (size_t)count * sizeof(*batches));
    if (!job)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %zu queued calls.", all);
    job->function = NULL;
    job->count = count;
    job->batches = (struct batch *)(void *)(job->tasks + all);
    tasks = job->tasks;
    for (int i = 0; i < count; i++) {
        memcpy(tasks, batches[i].tasks, (size_t)batches[i].count * sizeof(*tasks));
        batch_open(&job->batches[i], batches[i].comm, tasks, batches[i].count);
        tasks += batches[i].count;
    }
    push(stream, job);
    return RONDO_OK;
}

static rondo_result call(rondo_stream *base, rondo_stream_function function, void *context)
{
    struct thread_stream *stream = (struct thread_stream *)base;
    struct job *job = take_job(stream, 0);

    if (!job)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a queued function.");
    job->function = function;
    job->context = context;
    push(stream, job);
    return RONDO_OK;
}

static void close_thread(rondo_stream *base)
{
    struct thread_stream *stream = (struct thread_stream *)base;

    lock_take(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    lock_give(&stream->lock);
    pthread_join(stream->thread, NULL);
    spares_done(&stream->jobs);
    lock_done(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
}

/* With the lock held: hand out the error and forget it. */
static rondo_result take_error(struct thread_stream *stream)
{
    rondo_result result = stream->error;

    stream->error = RONDO_OK;
    return result ? rondo_fail(result, "%s", stream->sentence) : RONDO_OK;
}

static rondo_result synchronize(rondo_stream *base)
{
    struct thread_stream *stream = (struct thread_stream *)base;
    rondo_result result;

    lock_take(&stream->lock);
    while (stream->first || stream->busy)
        lock_wait(&stream->lock, &stream->changed);
    result = take_error(stream);
    lock_give(&stream->lock);
    return result;
}

static rondo_result query(rondo_stream *base)
{
    struct thread_stream *stream = (struct thread_stream *)base;
    rondo_result result;

    lock_take(&stream->lock);
    result = stream->error ? rondo_fail(stream->error, "%s", stream->sentence) : RONDO_OK;
    if (!result && (stream->first || stream->busy))
        result = RONDO_IN_PROGRESS;
    lock_give(&stream->lock);
    return result;
}

static const struct stream_ops thread_ops = {.add_batches = add_batches,
                                             .call = call,
                                             .synchronize = synchronize,
                                             .query = query,
                                             .close = close_thread};

rondo_result rondo_stream_open(rondo_stream **ret_stream)
{
    CANCEL_LATER();
    struct thread_stream *stream;

    if (!ret_stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_open: no place for the stream.");
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a stream.");
    stream->base.ops = &thread_ops;
    stream->base.home = fork_home();
    stream->last = &stream->first;
    lock_init(&stream->lock, LOCK_STREAM_JOBS);
    pthread_cond_init(&stream->changed, NULL);
    errno = pthread_create(&stream->thread, NULL, work, stream);
    if (errno) {
        rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot start the thread of a stream (ulimit -u?)");
        lock_done(&stream->lock);
        pthread_cond_destroy(&stream->changed);
        free(stream);
        return RONDO_ERROR_SYSTEM;
    }
    *ret_stream = &stream->base;
    return RONDO_OK;
}
