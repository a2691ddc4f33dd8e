/* SPDX-License-Identifier: BSD-3-Clause */
/* streams.c - calls in the background: order, events, several streams at once. */
#include "bodies.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { QUEUED = 20, COUNT = 5000 };

/* Ranks times itself, `times` over; what `times` all_reduces in place make of a 1. */
static uint64_t power(int ranks, int times)
{
    uint64_t value = 1;

    while (times-- > 0)
        value *= (uint64_t)ranks;
    return value;
}

static rondo_result check_all(const uint64_t *values, size_t count, uint64_t wanted, char *sentence)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != wanted)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "element %zu is %llu, not %llu", i,
                             (unsigned long long)values[i], (unsigned long long)wanted);
    return RONDO_OK;
}

static rondo_result queue(uint64_t *values, int times, rondo_comm *comm, rondo_stream *stream)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < times && !result; i++)
        result = rondo_all_reduce(values, values, COUNT, RONDO_UINT64, RONDO_SUM, comm, stream);
    return result;
}

static void set_ones(uint64_t *values)
{
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 1;
}

rondo_result streams_keep_order(rondo_comm *comm, void *argument, char *sentence)
{
    uint64_t *values = calloc(COUNT, sizeof(*values));
    rondo_stream *stream = NULL;
    rondo_result result = values ? rondo_stream_open(&stream) : RONDO_ERROR_MEMORY;

    if (!result) {
        set_ones(values);
        result = queue(values, QUEUED, comm, stream);
    }
    if (!result) {
        while ((result = rondo_stream_query(stream)) == RONDO_IN_PROGRESS)
            sched_yield();
    }
    if (!result)
        result = rondo_stream_synchronize(stream);
    if (result)
        world_say(sentence, result, "stream: %s", rondo_last_error(comm));
    else
        result = check_all(values, COUNT, power(rondo_comm_size(comm), QUEUED), sentence);
    rondo_stream_close(stream);
    free(values);
    return result;
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* Adds one to every value: between two sums over n ranks, (x * n + 1) * n + 1 ... */
static void add_one(void *context)
{
    uint64_t *values = context;

    for (size_t i = 0; i < COUNT; i++)
        values[i]++;
}

rondo_result streams_call_functions_in_order(rondo_comm *comm, void *argument, char *sentence)
{
    uint64_t *values = calloc(COUNT, sizeof(*values)), wanted = 1;
    rondo_stream *stream = NULL;
    rondo_result result = values ? rondo_stream_open(&stream) : RONDO_ERROR_MEMORY;

    if (!result)
        set_ones(values);
    for (int i = 0; i < QUEUED && !result; i++) {
        wanted = wanted * (uint64_t)rondo_comm_size(comm) + 1;
        result = queue(values, 1, comm, stream);
        if (!result)
            result = rondo_stream_call(stream, add_one, values);
    }
    if (!result)
        result = rondo_stream_synchronize(stream);
    if (result)
        world_say(sentence, result, "stream: %s", rondo_last_error(comm));
    else
        result = check_all(values, COUNT, wanted, sentence);
    rondo_stream_close(stream);
    free(values);
    return result;
}

/* ---- Events ---------------------------------------------------------------------------------- */

struct pair {
    rondo_comm *comms[2];
    rondo_stream *streams[2];
    rondo_event *event;
    uint64_t *values;
};

static rondo_result pair_open(struct pair *pair, rondo_comm *comm)
{
    rondo_result result;

    pair->comms[0] = comm;
    pair->values = calloc(COUNT, sizeof(*pair->values));
    if (!pair->values)
        return RONDO_ERROR_MEMORY;
    if ((result = rondo_comm_dup(comm, &pair->comms[1])) ||
        (result = rondo_stream_open(&pair->streams[0])) ||
        (result = rondo_stream_open(&pair->streams[1])))
        return result;
    return rondo_event_open(&pair->event);
}

static void pair_close(struct pair *pair)
{
    rondo_stream_close(pair->streams[0]);
    rondo_stream_close(pair->streams[1]);
    rondo_event_close(pair->event);
    rondo_comm_close(pair->comms[1]);
    free(pair->values);
}

/* The second stream continues with what the first one computed, several times over. */
static rondo_result hand_over(struct pair *pair, int times)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < times && !result; i++) {
        int from = i % 2, to = 1 - from;

        result = queue(pair->values, 2, pair->comms[from], pair->streams[from]);
        if (!result)
            result = rondo_event_record(pair->event, pair->streams[from]);
        if (!result)
            result = rondo_stream_wait_event(pair->streams[to], pair->event);
    }
    if (!result)
        result = rondo_event_wait(pair->event);
    if (!result)
        result = rondo_event_query(pair->event);
    return result;
}

rondo_result streams_wait_for_events(rondo_comm *comm, void *argument, char *sentence)
{
    enum { TIMES = 6 };
    struct pair pair = {0};
    rondo_result result = pair_open(&pair, comm);

    if (!result) {
        set_ones(pair.values);
        result = hand_over(&pair, TIMES);
    }
    if (result)
        world_say(sentence, result, "events: %s", rondo_last_error(NULL));
    else
        result = check_all(pair.values, COUNT, power(rondo_comm_size(comm), 2 * TIMES), sentence);
    if (!result)
        result = rondo_stream_synchronize(pair.streams[0]);
    if (!result)
        result = rondo_stream_synchronize(pair.streams[1]);
    if (!result)
        result = rondo_comm_finalize(pair.comms[1]);
    pair_close(&pair);
    return result;
}

/* Blocking calls on one communicator while another one works in the background. */
rondo_result streams_overlap_with_others(rondo_comm *comm, void *argument, char *sentence)
{
    struct pair pair = {0};
    rondo_result result = pair_open(&pair, comm);

    if (!result) {
        set_ones(pair.values);
        result = queue(pair.values, QUEUED, pair.comms[1], pair.streams[1]);
    }
    for (int i = 0; i < QUEUED && !result; i++)
        result = bodies_all_reduce(comm, 777, sentence);
    if (!result)
        result = rondo_stream_synchronize(pair.streams[1]);
    if (result)
        world_say(sentence, result, "overlap: %s", rondo_last_error(NULL));
    else
        result = check_all(pair.values, COUNT, power(rondo_comm_size(comm), QUEUED), sentence);
    if (!result)
        result = rondo_comm_finalize(pair.comms[1]);
    pair_close(&pair);
    return result;
}

/* ---- Several threads ------------------------------------------------------------------------- */

enum { THREADS = 4 };

struct user {
    rondo_comm *comm;
    rondo_stream *stream;
    int calls;
    rondo_result result;
};

static void *queue_barriers(void *argument)
{
    struct user *user = argument;

    for (int i = 0; i < user->calls && !user->result; i++)
        user->result = rondo_barrier(user->comm, user->stream);
    return NULL;
}

rondo_result streams_take_calls_of_several_threads(rondo_comm *comm, void *argument, char *sentence)
{
    struct user users[THREADS] = {{.comm = comm}};
    pthread_t threads[THREADS];
    rondo_stream *stream;
    rondo_result result = rondo_stream_open(&stream);

    if (result)
        return world_say(sentence, result, "no stream");
    for (int i = 0; i < THREADS; i++) {
        /* Calls of one rank wait for nobody, so many of them are queued in no time. */
        users[i] = (struct user){comm, stream, rondo_comm_size(comm) == 1 ? 10000 : 50, RONDO_OK};
        if (pthread_create(&threads[i], NULL, queue_barriers, &users[i]))
            return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        result = result ? result : users[i].result;
    }
    if (!result)
        result = rondo_stream_synchronize(stream);
    if (result)
        world_say(sentence, result, "barriers of %d threads: %s", THREADS, rondo_last_error(comm));
    rondo_stream_close(stream);
    return result;
}
