/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.c - order, graphs, messages and failures of calls on CUDA streams. */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1000, ROUNDS = 20 };

static void fill(int32_t *host, int32_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        host[i] = value + (int32_t)i;
}

/* True if these are `factor` times value + i plus `rest`. */
static bool holds(const int32_t *host, int32_t factor, int32_t value, int32_t rest, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (host[i] != factor * (value + (int32_t)i) + rest)
            return false;
    return true;
}

static rondo_result fail(struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(rank->comm));
}

/* Two buffers on the device and one on the host, of COUNT int32. */
struct trio {
    int32_t *first, *second, *host;
};

static bool trio_open(struct trio *trio)
{
    trio->first = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t));
    trio->second = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t));
    trio->host = malloc(COUNT * sizeof(int32_t));
    return trio->first && trio->second && trio->host;
}

static void trio_close(struct trio *trio)
{
    device_free(MEMORY_DEVICE, trio->first);
    device_free(MEMORY_DEVICE, trio->second);
    free(trio->host);
}

/* With a trio, freed when all ranks have finished. */
static rondo_result with_trio(struct gpu_rank *rank,
                              rondo_result (*body)(struct gpu_rank *, struct trio *))
{
    struct trio trio = {NULL, NULL, NULL};
    rondo_result result = trio_open(&trio) ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result)
        result = body(rank, &trio);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    trio_close(&trio);
    return result;
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Copies, calls on two streams, and events between them; nothing waits until the end. */
static rondo_result order_streams(struct gpu_rank *rank, struct trio *trio)
{
    const struct device_driver *cuda = device_driver();
    int size = rondo_comm_size(rank->comm), power = 1;
    CUstream streams[2] = {rank->cuda_stream, NULL};
    rondo_stream *wrapped[2] = {rank->stream, NULL};
    rondo_result result = RONDO_OK;
    CUevent event;

    if (cuda->cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING) || cuda->cuEventCreate(&event, 0))
        return fail(rank, "stream");
    result = rondo_stream_open_cuda(streams[1], &wrapped[1]);
    fill(trio->host, 1, COUNT);
    device_copy(trio->first, trio->host, COUNT * sizeof(int32_t));
    for (int i = 0; i < ROUNDS && !result; i++) {
        int32_t *from = i % 2 ? trio->second : trio->first;
        int32_t *to = i % 2 ? trio->first : trio->second;

        /* Sums until they would be too large, then maxima, which change nothing. */
        result = rondo_all_reduce(from, to, COUNT, RONDO_INT32,
                                  power < 1000 ? RONDO_SUM : RONDO_MAX, rank->comm, wrapped[i % 2]);
        power *= power < 1000 ? size : 1;
        if (size == 1)
            power = 1;
        if (cuda->cuEventRecord(event, streams[i % 2]) ||
            cuda->cuStreamWaitEvent(streams[1 - i % 2], event, 0))
            return fail(rank, "event");
    }
    if (!result)
        result = rondo_stream_synchronize(wrapped[0]);
    if (!result)
        result = rondo_stream_synchronize(wrapped[1]);
    if (result)
        return fail(rank, "call");
    device_copy(trio->host, ROUNDS % 2 ? trio->second : trio->first, COUNT * sizeof(int32_t));
    rondo_stream_close(wrapped[1]);
    cuda->cuStreamDestroy(streams[1]);
    cuda->cuEventDestroy(event);
    return holds(trio->host, power, 1, 0, COUNT) ? RONDO_OK : fail(rank, "wrong sums");
}

static rondo_result orders_streams(struct gpu_rank *rank)
{
    return with_trio(rank, order_streams);
}

rondo_result gpu_orders_streams(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, orders_streams);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* first = input of the launch; second = sum; first = sum of sums, by a group with a message. */
static rondo_result record(struct gpu_rank *rank, struct trio *trio)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    rondo_result result = rondo_all_reduce(trio->first, trio->second, COUNT, RONDO_INT32, RONDO_SUM,
                                           rank->comm, rank->stream);

    if (!result)
        result = rondo_group_start();
    if (!result)
        result = rondo_send(trio->second, COUNT, RONDO_INT32, (own + 1) % size, rank->comm,
                            rank->stream);
    if (!result)
        result = rondo_recv(trio->first, COUNT, RONDO_INT32, (own + size - 1) % size, rank->comm,
                            rank->stream);
    return result ? result : rondo_group_end();
}

static rondo_result launch(struct gpu_rank *rank, struct trio *trio, CUgraphExec graph, int round)
{
    const struct device_driver *cuda = device_driver();
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    int32_t others = size * (size - 1) / 2;

    fill(trio->host, round + own, COUNT);
    if (!device_copy(trio->first, trio->host, COUNT * sizeof(int32_t)) ||
        cuda->cuGraphLaunch(graph, rank->cuda_stream) ||
        cuda->cuStreamSynchronize(rank->cuda_stream))
        return fail(rank, "launch");
    device_copy(trio->host, trio->first, COUNT * sizeof(int32_t));
    if (!holds(trio->host, size, round, others, COUNT))
        return fail(rank, "wrong sums from a graph");
    return RONDO_OK;
}

static rondo_result replay_graphs(struct gpu_rank *rank, struct trio *trio)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    rondo_result result;

    if (cuda->cuStreamBeginCapture(rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return fail(rank, "begin of capture");
    result = record(rank, trio);
    if (cuda->cuStreamEndCapture(rank->cuda_stream, &graph) || result)
        return fail(rank, "capture");
    if (cuda->cuGraphInstantiate(&executable, graph, 0))
        return fail(rank, "instantiation");
    for (int i = 0; i < ROUNDS && !result; i++) {
        result = launch(rank, trio, executable, i);
        if (!result && i % 5 == 0) /* and calls outside of graphs between them */
            result = rondo_all_reduce(trio->first, trio->second, COUNT, RONDO_INT32, RONDO_MAX,
                                      rank->comm, rank->stream);
        if (!result)
            result = rondo_stream_synchronize(rank->stream);
    }
    cuda->cuGraphExecDestroy(executable);
    cuda->cuGraphDestroy(graph);
    return result ? fail(rank, "replay") : RONDO_OK;
}

static rondo_result replays_graphs(struct gpu_rank *rank)
{
    return with_trio(rank, replay_graphs);
}

rondo_result gpu_replays_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, replays_graphs);
}

/* The first call, all of it, while its rank captures on another stream, in the strictest mode. */
static rondo_result move_beside_captures(struct gpu_rank *rank, struct trio *trio)
{
    const struct device_driver *cuda = device_driver();
    _Atomic uint32_t *done = device_alloc(MEMORY_PINNED, sizeof(*done));
    int size = rondo_comm_size(rank->comm);
    CUstream other;
    CUgraph graph = NULL;
    rondo_result result;

    if (!done)
        return fail(rank, "pinned memory");
    *done = 0;
    fill(trio->host, rondo_comm_rank(rank->comm), COUNT);
    if (!device_copy(trio->first, trio->host, COUNT * sizeof(int32_t)) ||
        cuda->cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) ||
        cuda->cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL))
        return fail(rank, "begin of capture");
    result = rondo_all_reduce(trio->first, trio->first, COUNT, RONDO_INT32, RONDO_SUM, rank->comm,
                              rank->stream);
    if (!result &&
        cuda->cuStreamWriteValue32(rank->cuda_stream, (CUdeviceptr)(uintptr_t)done, 1, 0))
        result = RONDO_ERROR_SYSTEM;
    while (!result && !*done) /* to wait for a stream is nothing that captures like */
        sched_yield();
    if (cuda->cuStreamEndCapture(other, &graph) || result)
        return fail(rank, "capture beside a call");
    cuda->cuGraphDestroy(graph);
    cuda->cuStreamDestroy(other);
    result = rondo_stream_synchronize(rank->stream);
    device_free(MEMORY_PINNED, (void *)done);
    device_copy(trio->host, trio->first, COUNT * sizeof(int32_t));
    if (!result && !holds(trio->host, size, 0, size * (size - 1) / 2, COUNT))
        return fail(rank, "wrong sums beside a capture");
    return result;
}

static rondo_result moves_beside_captures(struct gpu_rank *rank)
{
    return with_trio(rank, move_beside_captures);
}

rondo_result gpu_moves_beside_captures(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, moves_beside_captures);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Everybody sends to everybody, himself included, several times in one group. */
static rondo_result exchange(struct gpu_rank *rank, struct trio *trio)
{
    enum { TIMES = 3 };
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    size_t part = COUNT / (TIMES * (size_t)size);
    rondo_result result = rondo_group_start();

    fill(trio->host, own * 100000, COUNT);
    device_copy(trio->first, trio->host, COUNT * sizeof(int32_t));
    for (int peer = size - 1; peer >= 0 && !result; peer--)
        for (size_t i = 0; i < TIMES && !result; i++) {
            size_t at = ((size_t)peer * TIMES + i) * part;

            result =
                rondo_send(trio->first + at, part, RONDO_INT32, peer, rank->comm, rank->stream);
            if (!result)
                result = rondo_recv(trio->second + at, part, RONDO_INT32, peer, rank->comm,
                                    rank->stream);
        }
    if (!result)
        result = rondo_group_end();
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result)
        return fail(rank, "exchange");
    device_copy(trio->host, trio->second, COUNT * sizeof(int32_t));
    for (size_t i = 0; i < part * TIMES * (size_t)size; i++) {
        size_t peer = i / (part * TIMES), within = i % (part * TIMES);
        int32_t sent = (int32_t)(peer * 100000 + (size_t)own * TIMES * part + within);

        if (trio->host[i] != sent)
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                             "element %zu is %d, should be %d", i, trio->host[i], sent);
    }
    return RONDO_OK;
}

static rondo_result exchanges_messages(struct gpu_rank *rank)
{
    return with_trio(rank, exchange);
}

rondo_result gpu_exchanges_messages(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, exchanges_messages);
}

/* ---- Calls without a CUDA stream ------------------------------------------------------------- */

static rondo_result block(struct gpu_rank *rank, struct trio *trio)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    rondo_stream *thread = NULL;
    rondo_result result;

    fill(trio->host, own, COUNT);
    device_copy(trio->first, trio->host, COUNT * sizeof(int32_t));
    result = rondo_all_reduce(trio->first, trio->second, COUNT, RONDO_INT32, RONDO_SUM, rank->comm,
                              NULL);
    if (!result)
        result = rondo_stream_open(&thread);
    if (!result)
        result = rondo_all_reduce(trio->second, trio->first, COUNT, RONDO_INT32, RONDO_MAX,
                                  rank->comm, thread);
    if (!result)
        result = rondo_stream_synchronize(thread);
    rondo_stream_close(thread);
    if (result)
        return fail(rank, "blocking call");
    device_copy(trio->host, trio->first, COUNT * sizeof(int32_t));
    return holds(trio->host, size, 0, size * (size - 1) / 2, COUNT) ? RONDO_OK
                                                                    : fail(rank, "wrong sums");
}

static rondo_result blocks(struct gpu_rank *rank)
{
    return with_trio(rank, block);
}

rondo_result gpu_blocks_on_device_memory(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, blocks);
}

/* ---- Counts that are too long ---------------------------------------------------------------- */

/* llm.c calls like this: sizeof(float) elements of a buffer for one. The first one counts. */
static rondo_result sum_four(struct gpu_rank *rank, float *memory, rondo_stream *stream)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    float one = 1 + (float)own;
    rondo_result result;

    if (!device_copy(memory, &one, sizeof(one)))
        return fail(rank, "copy");
    result = rondo_all_reduce(memory, memory, sizeof(float), RONDO_FLOAT32, RONDO_SUM, rank->comm,
                              stream);
    if (!result && stream)
        result = rondo_stream_synchronize(stream);
    if (result)
        return fail(rank, "a call of four");
    device_copy(&one, memory, sizeof(one));
    return one == (float)(size * (size + 1) / 2) ? RONDO_OK : fail(rank, "a wrong sum of four");
}

static rondo_result tolerates(struct gpu_rank *rank)
{
    static const enum device_memory kinds[] = {MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_PINNED};
    float *memory[3];
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 3; i++)
        if (!(memory[i] = device_alloc(kinds[i], sizeof(float))))
            result = RONDO_ERROR_MEMORY;
    for (int i = 0; i < 6 && !result; i++)
        result = sum_four(rank, memory[i / 2], i % 2 ? NULL : rank->stream);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    for (int i = 0; i < 3; i++)
        device_free(kinds[i], memory[i]);
    return result;
}

rondo_result gpu_tolerates_long_counts(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, tolerates);
}
