/* SPDX-License-Identifier: BSD-3-Clause */
#include "mixed.h"
#include "../device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 3000, ROUNDS = 4, STALE = 0x7f };

/* Two streams of a rank, what it sends and receives, and what each stream copies of that. */
struct pair {
    struct gpu_rank *rank;
    CUstream handles[2];
    rondo_stream *streams[2];
    int32_t *sent, *received, *copies[2], *host;
    uint32_t *flag; /* that the first stream waits for */
};

static rondo_result fail(const struct pair *pair, const char *what)
{
    return world_say(pair->rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(NULL));
}

static bool pair_open(struct pair *pair)
{
    const struct device_driver *cuda = device_driver();
    size_t bytes = COUNT * sizeof(int32_t);

    for (int i = 0; i < 2; i++) {
        if (cuda->cuStreamCreate(&pair->handles[i], CU_STREAM_NON_BLOCKING) ||
            rondo_stream_open_cuda(pair->handles[i], &pair->streams[i]))
            return false;
        pair->copies[i] = device_alloc(MEMORY_DEVICE, bytes);
    }
    pair->sent = device_alloc(MEMORY_DEVICE, bytes);
    pair->received = device_alloc(MEMORY_DEVICE, bytes);
    pair->flag = device_alloc(MEMORY_PINNED, sizeof(*pair->flag));
    pair->host = malloc(bytes);
    return pair->copies[0] && pair->copies[1] && pair->sent && pair->received && pair->flag &&
           pair->host;
}

static void pair_close(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        rondo_stream_close(pair->streams[i]);
        device_driver()->cuStreamDestroy(pair->handles[i]);
        device_free(MEMORY_DEVICE, pair->copies[i]);
    }
    device_free(MEMORY_DEVICE, pair->sent);
    device_free(MEMORY_DEVICE, pair->received);
    device_free(MEMORY_PINNED, pair->flag);
    free(pair->host);
}

static rondo_result with_pair(struct gpu_rank *rank, rondo_result (*body)(struct pair *))
{
    struct pair pair = {.rank = rank};
    rondo_result result = pair_open(&pair) ? body(&pair) : fail(&pair, "no streams or memory");

    if (result) /* the streams may be stuck */
        return result;
    result = rondo_comm_finalize(rank->comm);
    pair_close(&pair);
    return result;
}

/* ---- Steps of a rank ------------------------------------------------------------------------- */

static void let_go(const struct pair *pair)
{
    __atomic_store_n(pair->flag, 1, __ATOMIC_RELEASE);
}

static bool fill_sent(const struct pair *pair, int round)
{
    for (int i = 0; i < COUNT; i++)
        pair->host[i] = rondo_comm_rank(pair->rank->comm) * 100000 + round * 10000 + i;
    return device_copy(pair->sent, pair->host, COUNT * sizeof(int32_t));
}

/* The stream writes over what a message that came too early has brought. */
static bool spoil(const struct pair *pair, int which)
{
    return !device_driver()->cuMemsetD8Async((CUdeviceptr)(uintptr_t)pair->received, STALE,
                                             COUNT * sizeof(int32_t), pair->handles[which]);
}

static bool copy_received(const struct pair *pair, int which)
{
    return !device_driver()->cuMemcpyAsync((CUdeviceptr)(uintptr_t)pair->copies[which],
                                           (CUdeviceptr)(uintptr_t)pair->received,
                                           COUNT * sizeof(int32_t), pair->handles[which]);
}

/* To the next rank by one stream, from the one before by the other. */
static rondo_result exchange(const struct pair *pair, int sender)
{
    rondo_comm *comm = pair->rank->comm;
    int size = rondo_comm_size(comm), own = rondo_comm_rank(comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(pair->sent, COUNT, RONDO_INT32, (own + 1) % size, comm,
                            pair->streams[sender]);
    if (!result)
        result = rondo_recv(pair->received, COUNT, RONDO_INT32, (own + size - 1) % size, comm,
                            pair->streams[1 - sender]);
    return result ? result : rondo_group_end();
}

/* Both streams have copied what the rank before has sent. */
static rondo_result check_copies(const struct pair *pair, int round)
{
    int size = rondo_comm_size(pair->rank->comm);
    int from = (rondo_comm_rank(pair->rank->comm) + size - 1) % size;

    for (int which = 0; which < 2; which++) {
        if (rondo_stream_synchronize(pair->streams[which]))
            return fail(pair, "the end of a stream");
        device_copy(pair->host, pair->copies[which], COUNT * sizeof(int32_t));
        for (int i = 0; i < COUNT; i++)
            if (pair->host[i] != from * 100000 + round * 10000 + i)
                return world_say(pair->rank->sentence, RONDO_ERROR_INTERNAL,
                                 "round %d, stream %d: element %d is %d", round, which, i,
                                 pair->host[i]);
    }
    return RONDO_OK;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Both streams have work before the group, of which that of the receiving one is held. */
static rondo_result mix_streams(struct pair *pair)
{
    rondo_result result = RONDO_OK;

    for (int round = 0; round < ROUNDS && !result; round++) {
        int sender = round % 2;

        if (!fill_sent(pair, round) || !device_hold(pair->handles[1 - sender], pair->flag) ||
            !spoil(pair, 1 - sender))
            return fail(pair, "work before the group");
        if (exchange(pair, sender))
            return fail(pair, "the group");
        if (!copy_received(pair, 0) || !copy_received(pair, 1))
            return fail(pair, "work after the group");
        let_go(pair);
        result = check_copies(pair, round);
    }
    return result;
}

static rondo_result mixes_streams(struct gpu_rank *rank)
{
    return with_pair(rank, mix_streams);
}

rondo_result gpu_mixes_streams(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, mixes_streams);
}

/* One stream comes behind the other. */
static bool comes_behind(const struct pair *pair, int after, int before, CUevent event)
{
    return !device_driver()->cuEventRecord(event, pair->handles[before]) &&
           !device_driver()->cuStreamWaitEvent(pair->handles[after], event, 0);
}

static bool capture(const struct pair *pair, CUevent event, CUgraphExec *ret_graph)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    bool queued;

    if (cuda->cuStreamBeginCapture(pair->handles[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return false;
    queued = comes_behind(pair, 1, 0, event) && spoil(pair, 1) && !exchange(pair, 0) &&
             copy_received(pair, 0) && copy_received(pair, 1) && comes_behind(pair, 0, 1, event);
    if (cuda->cuStreamEndCapture(pair->handles[0], &graph) || !queued ||
        cuda->cuGraphInstantiate(ret_graph, graph, 0))
        return false;
    cuda->cuGraphDestroy(graph);
    return true;
}

/* In a graph an event of ours could happen once only, so it is refused. */
static rondo_result try_events(const struct pair *pair)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_event *event;
    rondo_result recorded, awaited;

    if (rondo_event_open(&event) || rondo_event_record(event, pair->streams[1]) ||
        cuda->cuStreamBeginCapture(pair->handles[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return fail(pair, "an event before a capture");
    recorded = rondo_event_record(event, pair->streams[0]);
    awaited = rondo_stream_wait_event(pair->streams[0], event);
    if (cuda->cuStreamEndCapture(pair->handles[0], &graph))
        return fail(pair, "the end of a capture");
    cuda->cuGraphDestroy(graph);
    rondo_event_close(event);
    return recorded == RONDO_ERROR_UNSUPPORTED && awaited == RONDO_ERROR_UNSUPPORTED
               ? RONDO_OK
               : fail(pair, "an event in a capture");
}

static rondo_result mix_streams_in_graphs(struct pair *pair)
{
    const struct device_driver *cuda = device_driver();
    CUgraphExec graph;
    CUevent event;
    rondo_result result = try_events(pair);

    if (result)
        return result;
    if (cuda->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) || !capture(pair, event, &graph))
        return fail(pair, "a graph");
    for (int round = 0; round < ROUNDS && !result; round++) {
        if (!fill_sent(pair, round) || cuda->cuGraphLaunch(graph, pair->handles[0]))
            return fail(pair, "a launch");
        result = check_copies(pair, round);
    }
    cuda->cuGraphExecDestroy(graph);
    cuda->cuEventDestroy(event);
    return result;
}

static rondo_result mixes_streams_in_graphs(struct gpu_rank *rank)
{
    return with_pair(rank, mix_streams_in_graphs);
}

rondo_result gpu_mixes_streams_in_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, mixes_streams_in_graphs);
}

/* The calls of a communicator that has one stream stay there, whatever others of the group do:
 * the held stream holds them, and not the other one. */
static rondo_result keep_homes_apart(struct pair *pair)
{
    rondo_comm *whole = pair->rank->outer, *comm = pair->rank->comm, *alone;
    int own = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    CUstream third;
    rondo_stream *stream;
    rondo_result result;

    if (rondo_comm_split(comm, own, 0, NULL, &alone) ||
        device_driver()->cuStreamCreate(&third, CU_STREAM_NON_BLOCKING) ||
        rondo_stream_open_cuda(third, &stream) || !fill_sent(pair, 0))
        return fail(pair, "a communicator of one rank");
    if (!device_hold(pair->handles[0], pair->flag) || !spoil(pair, 0) || rondo_group_start())
        return fail(pair, "the group's begin");
    result = rondo_all_reduce(pair->sent, pair->sent, COUNT, RONDO_INT32, RONDO_SUM, alone, stream);
    if (!result)
        result =
            rondo_send(pair->sent, COUNT, RONDO_INT32, (own + 1) % size, comm, pair->streams[0]);
    if (!result)
        result = rondo_recv(pair->received, COUNT, RONDO_INT32, (own + size - 1) % size, comm,
                            pair->streams[1]);
    if (result || rondo_group_end() || rondo_stream_synchronize(stream))
        return fail(pair, "the group");
    if (rondo_barrier(whole, NULL)) /* all have seen theirs end, while the messages wait */
        return fail(pair, "the ranks' meeting");
    let_go(pair);
    if (!copy_received(pair, 0) || !copy_received(pair, 1))
        return fail(pair, "work after the group");
    result = check_copies(pair, 0);
    rondo_stream_close(stream);
    device_driver()->cuStreamDestroy(third);
    rondo_comm_close(alone);
    return result;
}

static rondo_result keeps_homes_apart(struct gpu_rank *rank)
{
    return with_pair(rank, keep_homes_apart);
}

rondo_result gpu_keeps_homes_apart(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, keeps_homes_apart);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* The second stream comes to the event long before the first one does, and after it is recorded
 * again, and closed. */
static rondo_result await_events(struct pair *pair)
{
    rondo_event *event;

    if (rondo_event_open(&event) || !fill_sent(pair, 0) ||
        !device_hold(pair->handles[0], pair->flag))
        return fail(pair, "an event");
    if (exchange(pair, 0)) /* waits for the flag on both */
        return fail(pair, "the group");
    if (rondo_event_record(event, pair->streams[0]) ||
        rondo_stream_wait_event(pair->streams[1], event) || !copy_received(pair, 1) ||
        rondo_event_record(event, pair->streams[1]) ||
        rondo_stream_wait_event(pair->streams[0], event) || !copy_received(pair, 0))
        return fail(pair, "events in the streams");
    if (rondo_event_query(event) != RONDO_IN_PROGRESS)
        return fail(pair, "an event came too early");
    let_go(pair);
    if (rondo_event_wait(event) || rondo_event_query(event))
        return fail(pair, "an event did not come");
    rondo_event_close(event);
    return check_copies(pair, 0);
}

static rondo_result awaits_events(struct gpu_rank *rank)
{
    return with_pair(rank, await_events);
}

rondo_result gpu_awaits_events(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, awaits_events);
}
