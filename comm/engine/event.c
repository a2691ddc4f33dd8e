/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - events: functions on a stream, and points, by which streams of a kind that has them
 * await each other without functions.
 *
 * Each recording of an event is a moment of its own: who waits for one is not let go by a later one
 * that another stream reaches first.
 */
#include "rondo/bindings.h"

#include "comm/engine/stream.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"

#include <pthread.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct moment {
    bool reached;
    int users;            /* its event, and streams that have still to reach or pass it */
    rondo_result outcome; /* of the call before it on its stream */
    char *sentence;       /* of an error; NULL: no error, or no memory */
};

/* The moment's place on its stream, if that is of a kind that has points. */
struct place {
    const struct stream_ops *ops;
    void *point;
    int users; /* the event, and threads that have a stream await it */
};

struct rondo_event {
    struct lock lock; /* also of its moments and places */
    pthread_cond_t changed;
    struct moment *last; /* NULL: never recorded */
    struct place *place; /* of the last one; NULL: it has none, or is closed */
    int users;           /* the owner, and streams that know it */
    uint32_t home;       /* of the process that made it: fork_home() */
};

/* The argument of a stream's job that records or awaits an event; the job releases event and
 * moment. */
struct mark {
    rondo_event *event;
    struct moment *moment; /* NULL: nothing to wait for */
};

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
    if (!moment || --moment->users)
        return;
    free(moment->sentence);
    free(moment);
}

static void event_drop(rondo_event *event)
{
    bool last;

    lock_take(&event->lock);
    last = --event->users == 0;
    lock_give(&event->lock);
    if (!last)
        return;
    moment_drop(event->last);
    lock_done(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
}

/* By a thread of the program: no function on a stream may end a point. Accepts NULL. */
static void place_drop(rondo_event *event, struct place *place)
{
    bool last;

    if (!place)
        return;
    lock_take(&event->lock);
    last = --place->users == 0;
    lock_give(&event->lock);
    if (!last)
        return;
    place->ops->drop_point(place->point);
    free(place);
}

/* NULL where the stream's kind has none. */
static rondo_result place_open(rondo_stream *stream, struct place **ret_place)
{
    struct place *place;
    rondo_result result;

    *ret_place = NULL;
    if (!stream->ops->make_point)
        return RONDO_OK;
    place = malloc(sizeof(*place));
    if (!place)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a point of a stream.");
    *place = (struct place){.ops = stream->ops, .users = 1};
    result = stream->ops->make_point(stream, &place->point);
    if (result)
        free(place);
    else
        *ret_place = place;
    return result;
}

/* Both functions give all of the mark back. */
static void reach(void *context)
{
    struct mark *mark = context;
    rondo_event *event = mark->event;
    const char *sentence;
    rondo_result outcome = stream_outcome(&sentence);

    lock_take(&event->lock);
    mark->moment->reached = true;
    mark->moment->outcome = outcome;
    mark->moment->sentence = outcome ? strdup(sentence) : NULL;
    moment_drop(mark->moment);
    pthread_cond_broadcast(&event->changed);
    lock_give(&event->lock);
    event_drop(event);
    free(mark);
}

/* Until the event's moment or `deadline` has come; NULL: for ever. The lock is held. */
static void await_until(rondo_event *event, const struct moment *moment,
                        const struct timespec *deadline)
{
    bool late = false;

    while (moment && !moment->reached && !late) {
        if (deadline)
            late = !lock_wait_until(&event->lock, &event->changed, deadline);
        else
            lock_wait(&event->lock, &event->changed);
    }
}

static void await(rondo_event *event, struct moment *moment)
{
    lock_take(&event->lock);
    await_until(event, moment, NULL);
    moment_drop(moment);
    lock_give(&event->lock);
}

static void pass(void *context)
{
    struct mark *mark = context;

    await(mark->event, mark->moment);
    event_drop(mark->event);
    free(mark);
}

/* Take the mark back that no stream took. */
static rondo_result take_back(struct mark *mark, rondo_result result)
{
    lock_take(&mark->event->lock);
    if (mark->moment)
        mark->moment->reached = true; /* who waits for it already is let go */
    moment_drop(mark->moment);
    pthread_cond_broadcast(&mark->event->changed);
    lock_give(&mark->event->lock);
    event_drop(mark->event);
    free(mark);
    return result;
}

static rondo_result out_of_memory(void)
{
    return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a queued event.");
}

rondo_result rondo_event_open(rondo_event **ret_event)
{
    CANCEL_LATER();
    rondo_event *event;

    if (!ret_event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_open: no place for the event.");
    event = calloc(1, sizeof(*event));
    if (!event)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an event.");
    lock_init(&event->lock, LOCK_EVENT);
    lock_init_condition(&event->changed);
    event->users = 1;
    event->home = fork_home();
    *ret_event = event;
    return RONDO_OK;
}

/* The owner's part. */
static void event_end(rondo_event *event)
{
    struct place *place;

    lock_take(&event->lock);
    place = event->place;
    event->place = NULL;
    lock_give(&event->lock);
    place_drop(event, place);
    event_drop(event);
}

void rondo_event_close(rondo_event *event)
{
    CANCEL_LATER();

    if (event && fork_is_foreign(event->home))
        fork_keep(event);
    else if (event)
        event_end(event);
}

/* A graph would run the functions of a mark again, which are done with it after the first time. */
static rondo_result refuse_capture(const rondo_stream *stream, const char *function)
{
    if (!stream->ops->captures || !stream->ops->captures(stream))
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "%s: the stream is captured into a graph, in which an event of Rondo happens "
                      "once only: use an event of CUDA.",
                      function);
}

rondo_result rondo_event_record(rondo_event *event, rondo_stream *stream)
{
    CANCEL_LATER();
    struct place *place = NULL, *before;
    struct moment *moment;
    struct mark *mark;
    rondo_result result;

    if (!event || !stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_record: needs an event and a stream.");
    if (fork_is_foreign(event->home) || fork_is_foreign(stream->home))
        return fork_refuse("rondo_event_record", "event or the stream");
    result = refuse_capture(stream, "rondo_event_record");
    if (!result)
        result = place_open(stream, &place);
    if (result)
        return result;
    mark = malloc(sizeof(*mark));
    moment = calloc(1, sizeof(*moment));
    if (!mark || !moment) {
        free(mark);
        free(moment);
        place_drop(event, place);
        return out_of_memory();
    }
    *mark = (struct mark){.event = event, .moment = moment};
    moment->users = 2; /* the event, and the mark */
    lock_take(&event->lock);
    event->users++;
    moment_drop(event->last);
    event->last = moment;
    before = event->place;
    event->place = place;
    lock_give(&event->lock);
    place_drop(event, before);
    result = stream->ops->call(stream, reach, mark);
    return result ? take_back(mark, result) : RONDO_OK;
}

/* By a function, which waits. */
static rondo_result await_moment(rondo_stream *stream, rondo_event *event)
{
    struct mark *mark = malloc(sizeof(*mark));
    rondo_result result;

    if (!mark)
        return out_of_memory();
    lock_take(&event->lock);
    event->users++;
    *mark = (struct mark){.event = event, .moment = moment_hold(event)};
    lock_give(&event->lock);
    result = stream->ops->call(stream, pass, mark);
    if (!result)
        return RONDO_OK;
    lock_take(&event->lock);
    moment_drop(mark->moment);
    lock_give(&event->lock);
    event_drop(event);
    free(mark);
    return result;
}

/* The event's place for one more user, if this stream can await it; otherwise NULL. */
static struct place *place_hold(rondo_event *event, const rondo_stream *stream)
{
    struct place *place;

    lock_take(&event->lock);
    place = event->place && event->place->ops == stream->ops ? event->place : NULL;
    if (place)
        place->users++;
    lock_give(&event->lock);
    return place;
}

rondo_result rondo_stream_wait_event(rondo_stream *stream, rondo_event *event)
{
    CANCEL_LATER();
    struct place *place;
    rondo_result result;

    if (!event || !stream)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_stream_wait_event: needs a stream and an event.");
    if (fork_is_foreign(event->home) || fork_is_foreign(stream->home))
        return fork_refuse("rondo_stream_wait_event", "event or the stream");
    result = refuse_capture(stream, "rondo_stream_wait_event");
    if (result)
        return result;
    place = place_hold(event, stream);
    result = place ? stream->ops->await_point(stream, place->point) : await_moment(stream, event);
    place_drop(event, place);
    return result;
}

rondo_result stream_follow(rondo_stream *stream, rondo_stream *earlier)
{
    rondo_event *event;
    rondo_result result;
    void *point;

    if (!earlier || stream == earlier)
        return RONDO_OK;
    if (stream && stream->ops == earlier->ops && stream->ops->make_point) {
        result = stream->ops->make_point(earlier, &point);
        if (result)
            return result;
        result = stream->ops->await_point(stream, point);
        stream->ops->drop_point(point);
        return result;
    }
    result = rondo_event_open(&event);
    if (result)
        return result;
    result = rondo_event_record(event, earlier);
    if (!result)
        result = stream ? rondo_stream_wait_event(stream, event) : rondo_event_wait(event);
    rondo_event_close(event);
    return result;
}

rondo_result rondo_event_query(rondo_event *event)
{
    CANCEL_LATER();
    bool reached;

    if (!event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_query: the event is NULL.");
    if (fork_is_foreign(event->home))
        return fork_refuse("rondo_event_query", "event");
    lock_take(&event->lock);
    reached = !event->last || event->last->reached;
    lock_give(&event->lock);
    return reached ? RONDO_OK : RONDO_IN_PROGRESS;
}

rondo_result rondo_event_wait(rondo_event *event)
{
    CANCEL_LATER();
    struct moment *moment;

    if (!event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_wait: the event is NULL.");
    if (fork_is_foreign(event->home))
        return fork_refuse("rondo_event_wait", "event");
    lock_take(&event->lock);
    moment = moment_hold(event);
    lock_give(&event->lock);
    await(event, moment);
    return RONDO_OK;
}

/* ---- What became of a call ------------------------------------------------------------------- */

/* With the lock held: the result of the call before the moment, whose sentence becomes this
 * thread's. */
static rondo_result tell_outcome(const struct moment *moment)
{
    if (!moment)
        return RONDO_OK;
    if (!moment->reached)
        return RONDO_IN_PROGRESS;
    if (!moment->outcome)
        return RONDO_OK;
    return rondo_fail(moment->outcome, "%s",
                      moment->sentence ? moment->sentence : rondo_result_string(moment->outcome));
}

rondo_result rondo_event_outcome(rondo_event *event, double seconds)
{
    CANCEL_LATER();
    struct timespec deadline;
    struct moment *moment;
    rondo_result result;

    if (!event)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_event_outcome: the event is NULL.");
    if (fork_is_foreign(event->home))
        return fork_refuse("rondo_event_outcome", "event");
    if (seconds > 0)
        deadline = timespec_of(clock_seconds() + fmin(seconds, LONGEST_WAIT));
    lock_take(&event->lock);
    moment = moment_hold(event);
    if (!(seconds == 0))
        await_until(event, moment, seconds > 0 ? &deadline : NULL);
    result = tell_outcome(moment);
    moment_drop(moment);
    lock_give(&event->lock);
    return result;
}
