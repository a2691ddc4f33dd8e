/* SPDX-License-Identifier: BSD-3-Clause */
/* comm_bodies.c - status pages, streams, events and groups with several threads. */
#include "comm_bodies.h"

#include "comm/failure/leave.h"
#include "comm/state/status.h"
#include "rondo/rondo.h"
#include "tests/patience.h"
#include "transport/memory/shm.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Status pages ---------------------------------------------------------------------------- */

struct writer {
    struct status status;
    atomic_int done;
    int calls;
};

/* Every field of call n says n. */
static struct call_record record_of(uint32_t call)
{
    return (struct call_record){.fingerprint = call * 2654435761u,
                                .collective = (uint8_t)call,
                                .type = (uint8_t)(call + 1),
                                .op = (int16_t)call,
                                .root = (int32_t)~call,
                                .count = (uint64_t)call << 32 | ~call};
}

static void *write_calls(void *argument)
{
    struct writer *writer = argument;

    for (int call = 1; call <= writer->calls; call++) {
        struct call_record record = record_of((uint32_t)call);

        call_header_begin(&writer->status.call, (uint32_t)call, &record, false);
        if (call % 64 == 0)
            sched_yield();
    }
    atomic_store_explicit(&writer->done, 1, memory_order_release);
    return NULL;
}

const char *status_pages_are_never_torn(int calls)
{
    struct writer *writer = calloc(1, sizeof(*writer));
    const char *wrong = NULL;
    pthread_t thread;
    int seen = 0;

    if (!writer)
        return "no memory";
    writer->calls = calls;
    if (pthread_create(&thread, NULL, write_calls, writer)) {
        free(writer);
        return "no thread";
    }
    while (!atomic_load_explicit(&writer->done, memory_order_acquire) || !seen) {
        uint32_t call =
            atomic_load_explicit(&writer->status.call.sequence, memory_order_acquire) / 2;
        struct call_record wanted = record_of(call), got;

        if (!call || !status_read(&writer->status, call, &got))
            continue;
        seen++;
        if (wanted.fingerprint != got.fingerprint || wanted.collective != got.collective ||
            wanted.type != got.type || wanted.op != got.op || wanted.root != got.root ||
            wanted.count != got.count)
            wrong = "a record is mixed from two calls";
    }
    pthread_join(thread, NULL);
    free(writer);
    return wrong;
}

static void *write_failure(void *argument)
{
    char sentence[FAIL_SENTENCE_MAX];

    memset(sentence, 'x', sizeof(sentence));
    sentence[sizeof(sentence) - 1] = 0;
    status_fail(argument, RONDO_ERROR_PEER, 3, sentence);
    status_fail(argument, RONDO_ERROR_TIMEOUT, 4, "too late");
    return NULL;
}

const char *failures_are_whole(int times)
{
    const char *wrong = NULL;

    for (int i = 0; i < times && !wrong; i++) {
        struct status *status = calloc(1, sizeof(*status));
        char sentence[FAIL_SENTENCE_MAX];
        rondo_result result;
        pthread_t thread;
        int culprit = -7;

        if (!status || pthread_create(&thread, NULL, write_failure, status)) {
            free(status);
            return "no memory or no thread";
        }
        while (!(result = status_failure(status, &culprit, sentence)))
            sched_yield();
        if (result != RONDO_ERROR_PEER || culprit != 3 || strlen(sentence) != FAIL_SENTENCE_MAX - 1)
            wrong = "a failure was seen before it was whole, or not the first one";
        pthread_join(thread, NULL);
        free(status);
    }
    return wrong;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void *leave(void *comm)
{
    leave_for_good(comm);
    return NULL;
}

/* Rank 0 waits until rank 1 has left, and uses the memory in which that has said so. */
static const char *use_what_was_left(rondo_comm *const comms[2])
{
    struct lease *lease = leave_lease(comms[0]);
    pthread_t thread;

    if (!lease || pthread_create(&thread, NULL, leave, comms[1]))
        return "cannot start";
    while (!lease->ops->is_over(lease))
        sched_yield();
    ((unsigned char *)comms[0]->alarms[0])[offsetof(struct shm_alarm, gone) + 1] = 0;
    pthread_join(thread, NULL);
    lease->ops->close(lease);
    return NULL;
}

const char *closing_is_the_last_store(int times)
{
    const char *wrong = NULL;

    setenv("RONDO_COSTS", "1,5,5", 1); /* measuring would take longer than all else */
    for (int i = 0; i < times && !wrong; i++) {
        rondo_comm *comms[2] = {NULL, NULL};

        wrong = rondo_comm_open_all(2, NULL, comms) ? "cannot open" : use_what_was_left(comms);
        for (int r = 0; r < 2; r++)
            rondo_comm_close(comms[r]);
    }
    unsetenv("RONDO_COSTS");
    return wrong;
}

/* ---- Streams --------------------------------------------------------------------------------- */

enum { STREAMS = 3, COUNT = 100 };

/* Two ranks of this process, and streams. */
struct bench {
    rondo_comm *comms[2];
    rondo_stream *streams[STREAMS];
    rondo_event *event, *after;
    int32_t values[2][COUNT];
};

static bool bench_open(struct bench *bench)
{
    bool right;

    memset(bench, 0, sizeof(*bench));
    right = !rondo_comm_open_all(2, NULL, bench->comms) && !rondo_event_open(&bench->event) &&
            !rondo_event_open(&bench->after);
    for (int i = 0; i < STREAMS; i++)
        right = right && !rondo_stream_open(&bench->streams[i]);
    for (int i = 0; i < COUNT; i++)
        bench->values[0][i] = bench->values[1][i] = 1;
    return right;
}

static void bench_close(struct bench *bench)
{
    for (int i = 0; i < STREAMS; i++)
        rondo_stream_close(bench->streams[i]);
    rondo_event_close(bench->event);
    rondo_event_close(bench->after);
    rondo_comm_close(bench->comms[0]);
    rondo_comm_close(bench->comms[1]);
}

static rondo_result sum(struct bench *bench, int rank, rondo_stream *stream)
{
    return rondo_all_reduce(bench->values[rank], bench->values[rank], COUNT, RONDO_INT32, RONDO_SUM,
                            bench->comms[rank], stream);
}

static void note_thread(void *context)
{
    *(pid_t *)context = gettid();
}

/* Stream 0 waits for rank 1; the event is recorded behind that, stream 2 waits for it, then stream
 * 1 records it. When the thread of stream 2 sleeps, it has gone as far as it can. */
static const char *record_twice(struct bench *bench)
{
    const char *wrong = NULL;
    pid_t waits = 0;

    if (rondo_stream_call(bench->streams[2], note_thread, &waits) ||
        rondo_stream_synchronize(bench->streams[2]) || sum(bench, 0, bench->streams[0]) ||
        rondo_event_record(bench->event, bench->streams[0]) ||
        rondo_stream_wait_event(bench->streams[2], bench->event) ||
        rondo_event_record(bench->after, bench->streams[2]) ||
        rondo_event_record(bench->event, bench->streams[1]) ||
        rondo_stream_synchronize(bench->streams[1]))
        return "it could not be queued";
    if (rondo_event_query(bench->event) != RONDO_OK)
        return "the event's last point is reached, but not said to be";
    world_await_sleep(waits);
    if (rondo_event_query(bench->after) != RONDO_IN_PROGRESS)
        wrong = "work went on before the point it had to wait for";
    if (sum(bench, 1, NULL) || rondo_event_wait(bench->after) ||
        rondo_event_query(bench->after) != RONDO_OK)
        wrong = "the waiting work never ran";
    return wrong;
}

const char *events_keep_their_point(void)
{
    struct bench bench;
    const char *wrong = bench_open(&bench) ? record_twice(&bench) : "it could not be opened";

    bench_close(&bench);
    return wrong;
}

static const char *queue_and_close(struct bench *bench)
{
    for (int rank = 0; rank < 2; rank++)
        if (sum(bench, rank, bench->streams[rank]) ||
            rondo_event_record(bench->event, bench->streams[rank]) ||
            rondo_stream_wait_event(bench->streams[2], bench->event) ||
            sum(bench, rank, bench->streams[rank]))
            return "it could not be queued";
    rondo_event_close(bench->event); /* while jobs know it */
    bench->event = NULL;
    for (int i = 0; i < STREAMS; i++) {
        rondo_stream_close(bench->streams[i]); /* with work in it */
        bench->streams[i] = NULL;
    }
    for (int i = 0; i < COUNT; i++)
        if (bench->values[0][i] != 4 || bench->values[1][i] != 4)
            return "queued work was not done when its stream was closed";
    return NULL;
}

const char *streams_close_while_queued(int times)
{
    const char *wrong = NULL;

    for (int i = 0; i < times && !wrong; i++) {
        struct bench bench;

        wrong = bench_open(&bench) ? queue_and_close(&bench) : "it could not be opened";
        bench_close(&bench);
    }
    return wrong;
}

struct own_close {
    rondo_stream *stream;
    atomic_int queued, done;
};

static void close_own_stream(void *context)
{
    struct own_close *own = context;

    while (!atomic_load_explicit(&own->queued, memory_order_acquire))
        sched_yield();
    rondo_stream_close(own->stream);
}

static void note_done(void *context)
{
    struct own_close *own = context;

    atomic_store_explicit(&own->done, 1, memory_order_release);
}

const char *streams_close_themselves(int times)
{
    for (int i = 0; i < times; i++) {
        struct own_close own = {.queued = 0};

        if (rondo_stream_open(&own.stream) ||
            rondo_stream_call(own.stream, close_own_stream, &own) ||
            rondo_stream_call(own.stream, note_done, &own))
            return "a stream could not be used";
        atomic_store_explicit(&own.queued, 1, memory_order_release);
        while (!atomic_load_explicit(&own.done, memory_order_acquire))
            sched_yield();
    }
    return NULL;
}

static const char *group_once(struct bench *bench)
{
    rondo_result result = rondo_group_start();
    int32_t before = bench->values[0][0];

    for (int rank = 0; rank < 2 && !result; rank++)
        result = sum(bench, rank, bench->streams[rank]);
    result = result ? result : rondo_group_start();
    for (int rank = 0; rank < 2 && !result; rank++)
        result = sum(bench, rank, NULL);
    if (result || rondo_group_end() || bench->values[0][0] != before)
        return "the inner end of a group ran something";
    if (rondo_group_end() || rondo_stream_synchronize(bench->streams[0]) ||
        rondo_stream_synchronize(bench->streams[1]))
        return "the group failed";
    if (bench->values[0][0] != 4 * before || bench->values[1][COUNT - 1] != 4 * before)
        return "a sum is wrong";
    return NULL;
}

const char *groups_mix_streams_and_ranks(int times)
{
    struct bench bench;
    const char *wrong = bench_open(&bench) ? NULL : "it could not be opened";

    for (int i = 0; i < times && !wrong; i++)
        wrong = group_once(&bench);
    bench_close(&bench);
    return wrong;
}
