/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream_thread.c - calls in the background: a queue of jobs and one thread that does them in
 * order.
 *
 * A batch takes its turn on the communicator when it is queued, so the order of calls is the order
 * in which they were made, whichever thread runs them. Turn and place in the queue are taken under
 * the stream's lock: with turns in another order the stream's thread would wait for a turn that
 * lies behind in its own queue. So a batch only ever waits for batches whose turns were taken
 * before its own, also over several streams and communicators.
 */
#include "comm/engine/call.h"
#include "comm/engine/run.h"
#include "comm/engine/stream.h"

#include "base/caller/times.h"
#include "base/cancel.h"
#include "base/fail.h"
#include "base/fork.h"
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
    struct thread_stream *next; /* in the list of all */
    pthread_t thread;
    struct lock lock;
    pthread_cond_t changed;
    struct job *first, **last;
    struct job *running; /* NULL: none */
    struct spares jobs;  /* that were done */
    bool closing;
    bool orphan;        /* closed by its own thread, which frees it; of that thread */
    rondo_result error; /* the first since the last synchronize */
    char sentence[FAIL_SENTENCE_MAX];
};

static struct lock list_lock = LOCK_AT(LOCK_STREAM_LIST);
FORK_RENEWS({.lock = &list_lock});
static struct thread_stream *list;

/* A thread of a stream keeps the result of the call that it has run last. */
static _Thread_local struct {
    struct thread_stream *stream; /* NULL: it is no thread of a stream */
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
    while (!stream->first && !stream->closing)
        lock_wait(&stream->lock, &stream->changed);
    job = stream->first;
    if (job) {
        stream->first = job->next;
        if (!stream->first)
            stream->last = &stream->first;
    }
    stream->running = job;
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
    stream->running = NULL;
    spare_give(&stream->jobs, job);
    pthread_cond_broadcast(&stream->changed);
    lock_give(&stream->lock);
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

/* Put the job in the queue, its batches in line for their turns. */
static void push(struct thread_stream *stream, struct job *job)
{
    job->next = NULL;
    lock_take(&stream->lock);
    for (int i = 0; i < job->count; i++)
        batch_open(&job->batches[i], job->batches[i].comm, job->batches[i].tasks,
                   job->batches[i].count);
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
        job->batches[i] =
            (struct batch){.comm = batches[i].comm, .tasks = tasks, .count = batches[i].count};
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
    job->count = 0;
    push(stream, job);
    return RONDO_OK;
}

/* ---- The list of all ------------------------------------------------------------------------- */

static void list_add(struct thread_stream *stream)
{
    lock_take(&list_lock);
    stream->next = list;
    list = stream;
    lock_give(&list_lock);
}

static void list_remove(struct thread_stream *stream)
{
    struct thread_stream **link = &list;

    lock_take(&list_lock);
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    lock_give(&list_lock);
}

static bool job_uses(const struct job *job, const void *memory, size_t bytes)
{
    for (int i = 0; i < job->count; i++) {
        const struct batch *batch = &job->batches[i];

        for (int k = 0; k < batch->count; k++) {
            const struct task *task = &batch->tasks[k];

            if (call_uses(batch->size, batch->rank, &task->key, task->input, task->output, memory,
                          bytes))
                return true;
        }
    }
    return false;
}

static bool stream_uses(struct thread_stream *stream, const void *memory, size_t bytes)
{
    bool uses;

    lock_take(&stream->lock);
    uses = stream->running && job_uses(stream->running, memory, bytes);
    for (const struct job *job = stream->first; job && !uses; job = job->next)
        uses = job_uses(job, memory, bytes);
    lock_give(&stream->lock);
    return uses;
}

static bool any_uses(const void *memory, size_t bytes)
{
    bool uses = false;

    lock_take(&list_lock);
    for (struct thread_stream *stream = list; stream && !uses; stream = stream->next)
        uses = !fork_is_foreign(stream->base.home) && stream_uses(stream, memory, bytes);
    lock_give(&list_lock);
    return uses;
}

rondo_result streams_let_go(const void *memory, size_t bytes, const char *function)
{
    if (outcome.stream && stream_uses(outcome.stream, memory, bytes))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "%s: a call that is queued on the stream behind this function uses the "
                          "memory.",
                          function);
    while (any_uses(memory, bytes))
        doze_for(DOZE_PEER);
    return RONDO_OK;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void free_stream(struct thread_stream *stream)
{
    list_remove(stream);
    spares_done(&stream->jobs);
    lock_done(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
}

static void *work(void *argument)
{
    struct thread_stream *stream = argument;
    struct job *job;

    outcome.stream = stream;
    while ((job = next_job(stream)))
        do_job(stream, job);
    if (stream->orphan)
        free_stream(stream);
    return NULL;
}

/* A function on the stream cannot wait for the jobs behind it: then the thread frees the stream
 * when they are done. */
static void close_thread(rondo_stream *base)
{
    struct thread_stream *stream = (struct thread_stream *)base;

    lock_take(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    lock_give(&stream->lock);
    if (outcome.stream == stream) {
        stream->orphan = true;
        pthread_detach(stream->thread);
        return;
    }
    pthread_join(stream->thread, NULL);
    free_stream(stream);
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
    while (stream->first || stream->running)
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
    if (!result && (stream->first || stream->running))
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
    list_add(stream);
    *ret_stream = &stream->base;
    return RONDO_OK;
}
