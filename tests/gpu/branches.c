/* SPDX-License-Identifier: BSD-3-Clause */
/* branches.c - calls of one communicator that nothing but the communicator keeps apart: on branches
 * of a graph, in graphs and beside them, and in streams that share a handle. */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { LAUNCHES = 3, SHORT = 1000, LONG = 20000, VERY_LONG = 60000 };

/* Two streams, and a buffer of each: the calls sum it up in place. */
struct branch {
    CUstream handle;
    rondo_stream *stream;
    int32_t *buffer, *host;
    size_t count;
};

struct fork {
    struct gpu_rank *rank;
    struct branch branch[2];
    CUevent event;
};

static rondo_result fail(const struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(rank->comm));
}

static bool branch_open(struct branch *branch, size_t count)
{
    size_t bytes = count * sizeof(int32_t);

    branch->count = count;
    branch->buffer = device_alloc(MEMORY_DEVICE, bytes);
    branch->host = malloc(bytes);
    if (!branch->buffer || !branch->host ||
        device_driver()->cuStreamCreate(&branch->handle, CU_STREAM_NON_BLOCKING) ||
        rondo_stream_open_cuda(branch->handle, &branch->stream))
        return false;
    for (size_t i = 0; i < count; i++)
        branch->host[i] = (int32_t)(i % 1000);
    return device_copy(branch->buffer, branch->host, bytes);
}

static void branch_close(struct branch *branch)
{
    rondo_stream_close(branch->stream);
    device_driver()->cuStreamDestroy(branch->handle);
    device_free(MEMORY_DEVICE, branch->buffer);
    free(branch->host);
}

static rondo_result call(const struct fork *fork, int which)
{
    const struct branch *branch = &fork->branch[which];

    return rondo_all_reduce(branch->buffer, branch->buffer, branch->count, RONDO_INT32, RONDO_SUM,
                            fork->rank->comm, branch->stream);
}

/* After `calls` of them; what was summed up begins anew. */
static rondo_result check(const struct fork *fork, int which, int calls)
{
    const struct branch *branch = &fork->branch[which];
    size_t bytes = branch->count * sizeof(int32_t), wrong = 0;
    int32_t first;
    int32_t factor = 1;

    while (calls-- > 0)
        factor *= rondo_comm_size(fork->rank->comm);
    if (device_driver()->cuStreamSynchronize(branch->handle) ||
        !device_copy(branch->host, branch->buffer, bytes))
        return fail(fork->rank, "the end of a branch");
    first = branch->host[1];
    for (size_t i = 0; i < branch->count; i++) {
        wrong += branch->host[i] != factor * (int32_t)(i % 1000);
        branch->host[i] = (int32_t)(i % 1000);
    }
    device_copy(branch->buffer, branch->host, bytes);
    return wrong ? world_say(fork->rank->sentence, RONDO_ERROR_INTERNAL,
                             "branch %d of %zu elements: %zu are wrong, element 1 was %d", which,
                             branch->count, wrong, (int)first)
                 : RONDO_OK;
}

static rondo_result with_fork(struct gpu_rank *rank, const size_t counts[2],
                              rondo_result (*body)(struct fork *))
{
    struct fork fork = {.rank = rank};
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 2 && !result; i++)
        if (!branch_open(&fork.branch[i], counts[i]))
            result = fail(rank, "a branch");
    if (!result && device_driver()->cuEventCreate(&fork.event, CU_EVENT_DISABLE_TIMING))
        result = fail(rank, "an event");
    if (!result)
        result = body(&fork);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    if (result) /* streams may be stuck */
        return result;
    for (int i = 0; i < 2; i++)
        branch_close(&fork.branch[i]);
    device_driver()->cuEventDestroy(fork.event);
    /* To free waits for the device, where a rank of this process may have begun anew. */
    return rondo_barrier(rank->comm, NULL);
}

/* Runs the body with two short calls, with two long ones, and with one of each. */
static rondo_result with_forks(struct gpu_rank *rank, rondo_result (*body)(struct fork *))
{
    static const size_t counts[][2] = {
        {SHORT, SHORT / 2}, {VERY_LONG, LONG}, {LONG, SHORT}, {SHORT, VERY_LONG}};
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !result; i++)
        result = with_fork(rank, counts[i], body);
    return result;
}

/* One branch's stream comes behind the other's. */
static bool comes_behind(const struct fork *fork, int after, int before)
{
    return !device_driver()->cuEventRecord(fork->event, fork->branch[before].handle) &&
           !device_driver()->cuStreamWaitEvent(fork->branch[after].handle, fork->event, 0);
}

static bool begin(const struct fork *fork, int which)
{
    return !device_driver()->cuStreamBeginCapture(fork->branch[which].handle,
                                                  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

/* One or two captures; a graph cannot be made ready while the thread captures another. */
static bool end(const struct fork *fork, int count, CUgraphExec *ret_graphs)
{
    CUgraph graphs[2] = {NULL, NULL};
    bool good = true;

    for (int i = 0; i < count; i++)
        good &= !device_driver()->cuStreamEndCapture(fork->branch[i].handle, &graphs[i]);
    for (int i = 0; i < count; i++) {
        good = good && !device_driver()->cuGraphInstantiate(&ret_graphs[i], graphs[i], 0);
        if (graphs[i])
            device_driver()->cuGraphDestroy(graphs[i]);
    }
    return good;
}

static bool launch(const struct fork *fork, int which, CUgraphExec graph)
{
    return !device_driver()->cuGraphLaunch(graph, fork->branch[which].handle);
}

/* So that work of one rank is far behind the same work of another. */
static void come_late(const struct fork *fork)
{
    if (rondo_comm_rank(fork->rank->comm) == 1)
        usleep(20000);
}

/* ---- Two branches of one graph --------------------------------------------------------------- */

static rondo_result fork_graph(struct fork *fork)
{
    CUgraphExec graph = NULL;
    rondo_result result = RONDO_OK;

    if (!begin(fork, 0) || !comes_behind(fork, 1, 0))
        return fail(fork->rank, "begin of capture");
    for (int i = 0; i < 4 && !result; i++)
        result = call(fork, i % 2);
    if (!comes_behind(fork, 0, 1) || !end(fork, 1, &graph) || result)
        return fail(fork->rank, "capture");
    for (int i = 0; i < LAUNCHES && !result; i++) {
        come_late(fork);
        if (!launch(fork, 0, graph))
            return fail(fork->rank, "launch");
        for (int which = 0; which < 2 && !result; which++)
            result = check(fork, which, 2);
    }
    device_driver()->cuGraphExecDestroy(graph);
    return result;
}

static rondo_result forks_graphs(struct gpu_rank *rank)
{
    return with_forks(rank, fork_graph);
}

rondo_result gpu_forks_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, forks_graphs);
}

/* ---- Graphs beside calls in other streams, and beside each other ----------------------------- */

static rondo_result mix_graph(struct fork *fork)
{
    CUgraphExec graphs[2] = {NULL, NULL};
    rondo_result result = call(fork, 1);

    /* Two captures at a time. */
    if (result || !begin(fork, 0) || !begin(fork, 1))
        return fail(fork->rank, "begin of capture");
    for (int i = 0; i < 4 && !result; i++)
        result = call(fork, i % 2);
    if (!end(fork, 2, graphs) || result)
        return fail(fork->rank, "capture");
    for (int i = 0; i < LAUNCHES && !result; i++) {
        come_late(fork);
        if (!launch(fork, 0, graphs[0]))
            return fail(fork->rank, "launch");
        result = call(fork, 1);
        if (!result && (!launch(fork, 1, graphs[1]) || !launch(fork, 0, graphs[0])))
            return fail(fork->rank, "launch");
        for (int which = 0; which < 2 && !result; which++)
            result = check(fork, which, which ? 3 + !i : 4);
    }
    for (int i = 0; i < 2; i++)
        device_driver()->cuGraphExecDestroy(graphs[i]);
    return result;
}

static rondo_result mixes_graphs(struct gpu_rank *rank)
{
    return with_forks(rank, mix_graph);
}

rondo_result gpu_mixes_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, mixes_graphs);
}

/* ---- One handle, several streams ------------------------------------------------------------- */

struct caller {
    struct fork *fork;
    int which;
    rondo_result result;
};

/* A thread's own stream; it is done with before the thread is. */
static void *call_from_thread(void *argument)
{
    struct caller *caller = argument;

    if (device_use(rondo_comm_cuda_device(caller->fork->rank->comm)))
        caller->result = call(caller->fork, caller->which);
    else
        caller->result = RONDO_ERROR_SYSTEM;
    return NULL;
}

static rondo_result share_handle(struct fork *fork)
{
    rondo_stream *own[2] = {fork->branch[0].stream, fork->branch[1].stream};
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 2 && !result; i++)
        result = rondo_stream_open_cuda(CU_STREAM_PER_THREAD, &fork->branch[i].stream);
    for (int i = 0; i < 2 * LAUNCHES && !result; i++) {
        struct caller caller = {.fork = fork, .which = i % 2};
        pthread_t thread;

        come_late(fork);
        if (pthread_create(&thread, NULL, call_from_thread, &caller))
            return fail(fork->rank, "a thread");
        pthread_join(thread, NULL);
        result = caller.result;
    }
    for (int i = 0; i < 2; i++) {
        rondo_stream_close(fork->branch[i].stream);
        fork->branch[i].stream = own[i];
    }
    /* In streams of no thread, behind the last of all. */
    for (int i = 0; i < 2 && !result; i++)
        result = call(fork, i);
    for (int i = 0; i < 2 && !result; i++)
        result = check(fork, i, LAUNCHES + 1);
    return result ? fail(fork->rank, fork->rank->sentence) : RONDO_OK;
}

static rondo_result shares_handles(struct gpu_rank *rank)
{
    return with_forks(rank, share_handle);
}

rondo_result gpu_shares_handles(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, shares_handles);
}
