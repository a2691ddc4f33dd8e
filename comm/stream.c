/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - calls in the background: a queue of jobs and one thread that does them in order.
 *
 * A batch takes its turn on the communicator when it is queued, so the order of calls is the order
 * in which they were made, whichever thread runs them. Each recording of an event is a moment of
 * its own: who waits for one is not let go by a later one that another stream reaches first.
 */
#include "comm/call.h"

#include "base/fail.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct moment {
    bool reached;
    int users; /* its event, and jobs that know it */
};

struct rondo_event {
    pthread_mutex_t lock; /* also of its moments */
    pthread_cond_t changed;
    struct moment *last; /* NULL: never recorded */
    int users;           /* the owner, and jobs that know it */
};

enum job_kind { JOB_BATCH, JOB_RECORD, JOB_WAIT, JOB_FUNCTION };

struct job {
    struct job *next;
    enum job_kind kind;
    struct batch *batches; /* behind the tasks */
    int count;
    rondo_event *event;
    struct moment *moment; /* of the event; NULL: nothing to wait for */
    rondo_stream_function function;
    void *context;
    struct task tasks[];
};

struct rondo_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, **last;
    bool closing, busy;
    rondo_result error; /* the first since the last synchronize */
    char sentence[FAIL_SENTENCE_MAX];
};

/* ---- Events ---------------------------------------------------------------------------------- */

/* With the event's lock held: its last moment for one more user; NULL: it was never recorded. */
static struct moment *moment_hold(const rondo_event *event)
{
    if (event->last)
        event->last->users++;
    return event->last;
}

/* With the event's lock held; accepts NULL. */
static void moment_drop(struct moment *moment)
{
    if (moment && --moment->users == 0)
        free(moment);
}

static void event_drop(rondo_event *event)
{
    bool last;

    pthread_mutex_lock(&event->lock);
    last = --event->users == 0;
    pthread_mutex_unlock(&event->lock);
    if (!last)
        return;
    moment_drop(event->last);
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
}

/* Both give the moment back. */
static void event_reach(rondo_event *event, struct moment *moment)
{
    pthread_mutex_lock(&event->lock);
    moment->reached = true;
    moment_drop(moment);
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

static void event_await(rondo_event *event, struct moment *moment)
{
    pthread_mutex_lock(&event->lock);
    while (moment && !moment->reached)
        pthread_cond_wait(&event->changed, &event->lock);
    moment_drop(moment);
    pthread_mutex_unlock(&event->lock);
}

/* ---- The worker ------------------------------------------------------------------------------ */

static struct job *next_job(rondo_stream *stream)
{
    struct job *job;

    pthread_mutex_lock(&stream->lock);
    stream->busy = false;
    pthread_cond_broadcast(&stream->changed);
    while (!stream->first && !stream->closing)
        pthread_cond_wait(&stream->changed, &stream->lock);
    job = stream->first;
    if (job) {
        stream->first = job->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->busy = true;
    }
    pthread_mutex_unlock(&stream->lock);
    return job;
}

static void note_error(rondo_stream *stream, rondo_result result)
{
    pthread_mutex_lock(&stream->lock);
    if (!stream->error) {
        stream->error = result;
        memcpy(stream->sentence, fail_sentence(), strlen(fail_sentence()) + 1);
    }
    pthread_mutex_unlock(&stream->lock);
}

static void do_job(rondo_stream *stream, struct job *job)
{
    rondo_result result;

    switch (job->kind) {
    case JOB_BATCH:
        result = run_batches(job->batches, job->count);
        if (result)
            note_error(stream, result);
        break;
    case JOB_RECORD:
        event_reach(job->event, job->moment);
        event_drop(job->event);
        break;
    case JOB_WAIT:
        event_await(job->event, job->moment);
        event_drop(job->event);
        break;
    case JOB_FUNCTION:
        job->function(job->context);
        break;
    }
    free(job);
}

static void *work(void *argument)
{
    rondo_stream *stream = argument;
    struct job *job;

    while ((job = next_job(stream)))
        do_job(stream, job);
    return NULL;
}

static void push(rondo_stream *stream, struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->last = job;
    stream->last = &job->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

rondo_result stream_add_batches(rondo_stream *stream, const struct batch *batches, int count)
{
    struct job *job;
    struct task *tasks;
    size_t all = 0;

    for (int i = 0; i < count; i++)
        all += (size_t)batches[i].count;
    job = malloc(sizeof(*job) + all * sizeof(*tasks) + (size_t)count * sizeof(*batches));
    if (!job)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %zu queued calls.", all);
    job->kind = JOB_BATCH;
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

/* ---- Public ---------------------------------------------------------------------------------- */

rondo_result rondo_stream_open(rondo_stream **ret_stream)
{
    rondo_stream *stream;

    if (!ret_stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_open: no place for the stream.");
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a stream.");
    stream->last = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, work, stream)) {
        pthread_mutex_destroy(&stream->lock);
        pthread_cond_destroy(&stream->changed);
        free(stream);
        return rondo_fail(RONDO_ERROR_SYSTEM, "Cannot start the thread of a stream.");
    }
    *ret_stream = stream;
    return RONDO_OK;
}

void rondo_stream_close(rondo_stream *stream)
{
    if (!stream)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
}

/* With the lock held: hand out the error and forget it. */
static rondo_result take_error(rondo_stream *stream)
{
    rondo_result result = stream->error;

    stream->error = RONDO_OK;
    return result ? rondo_fail(result, "%s", stream->sentence) : RONDO_OK;
}

rondo_result rondo_stream_synchronize(rondo_stream *stream)
{
    rondo_result result;

    if (!stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_synchronize: the stream is NULL.");
    pthread_mutex_lock(&stream->lock);
    while (stream->first || stream->busy)
        pthread_cond_wait(&stream->changed, &stream->lock);
    result = take_error(stream);
    pthread_mutex_unlock(&stream->lock);
    return result;
}

rondo_result rondo_stream_query(rondo_stream *stream)
{
    rondo_result result;

    if (!stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_query: the stream is NULL.");
    pthread_mutex_lock(&stream->lock);
    result = stream->error ? rondo_fail(stream->error, "%s", stream->sentence) : RONDO_OK;
    if (!result && (stream->first || stream->busy))
        result = RONDO_IN_PROGRESS;
    pthread_mutex_unlock(&stream->lock);
    return result;
}

rondo_result rondo_stream_call(rondo_stream *stream, rondo_stream_function function, void *context)
{
    struct job *job;

    if (!stream || !function)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_call: needs a stream and a function.");
    job = calloc(1, sizeof(*job));
    if (!job)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a queued function.");
    job->kind = JOB_FUNCTION;
    job->function = function;
    job->context = context;
    push(stream, job);
    return RONDO_OK;
}

rondo_result rondo_event_open(rondo_event **ret_event)
{
    rondo_event *event;

    if (!ret_event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_open: no place for the event.");
    event = calloc(1, sizeof(*event));
    if (!event)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an event.");
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    event->users = 1;
    *ret_event = event;
    return RONDO_OK;
}

void rondo_event_close(rondo_event *event)
{
    if (event)
        event_drop(event);
}

static rondo_result push_event(rondo_stream *stream, rondo_event *event, enum job_kind kind)
{
    struct job *job = calloc(1, sizeof(*job));
    struct moment *moment = kind == JOB_RECORD ? calloc(1, sizeof(*moment)) : NULL;

    if (!job || (kind == JOB_RECORD && !moment)) {
        free(job);
        free(moment);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a queued event.");
    }
    job->kind = kind;
    job->event = event;
    pthread_mutex_lock(&event->lock);
    event->users++;
    if (moment) {
        moment->users = 1;
        moment_drop(event->last);
        event->last = moment;
    }
    job->moment = moment_hold(event);
    pthread_mutex_unlock(&event->lock);
    push(stream, job);
    return RONDO_OK;
}

rondo_result rondo_event_record(rondo_event *event, rondo_stream *stream)
{
    if (!event || !stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_record: needs an event and a stream.");
    return push_event(stream, event, JOB_RECORD);
}

rondo_result rondo_stream_wait_event(rondo_stream *stream, rondo_event *event)
{
    if (!event || !stream)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_stream_wait_event: needs a stream and an event.");
    return push_event(stream, event, JOB_WAIT);
}

rondo_result rondo_event_query(rondo_event *event)
{
    bool reached;

    if (!event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_query: the event is NULL.");
    pthread_mutex_lock(&event->lock);
    reached = !event->last || event->last->reached;
    pthread_mutex_unlock(&event->lock);
    return reached ? RONDO_OK : RONDO_IN_PROGRESS;
}

rondo_result rondo_event_wait(rondo_event *event)
{
    struct moment *moment;

    if (!event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_wait: the event is NULL.");
    pthread_mutex_lock(&event->lock);
    moment = moment_hold(event);
    pthread_mutex_unlock(&event->lock);
    event_await(event, moment);
    return RONDO_OK;
}
