/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frees_behind.c - device memory is freed behind a call that cannot end yet.
 *
 * A GPU's driver lets a free wait until the device has done all work of the process. If that is a
 * call whose peer is late, and whose memory this process has still to map, whoever maps must not
 * need what the free holds: the ranks would wait for each other for ever. The stand-in's free holds
 * it unless CUDA_STANDIN_FREE_LOCKS=0. What the calls bring is checked, too.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 20, ROUNDS = 2 };

static rondo_result fail(struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(rank->comm));
}

/* The first half goes to the next rank, the second half comes from the one before. */
static rondo_result exchange(struct gpu_rank *rank, int32_t *fresh)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result =
            rondo_send(fresh, COUNT / 2, RONDO_INT32, (own + 1) % size, rank->comm, rank->stream);
    if (!result)
        result = rondo_recv(fresh + COUNT / 2, COUNT / 2, RONDO_INT32, (own + size - 1) % size,
                            rank->comm, rank->stream);
    return result ? result : rondo_group_end();
}

static int32_t expected(const struct gpu_rank *rank, bool exchanges, int i)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);

    if (!exchanges)
        return size * (size - 1) / 2 + size * (i % 1000);
    return i < COUNT / 2 ? own + i % 1000 : (own + size - 1) % size + (i - COUNT / 2) % 1000;
}

/* On memory that no peer has seen, so that it has to be mapped; other memory is freed meanwhile. */
static rondo_result call_and_free(struct gpu_rank *rank, int late, bool exchanges, int32_t *host)
{
    size_t bytes = COUNT * sizeof(*host);
    int32_t *fresh = device_alloc(MEMORY_DEVICE, bytes);
    void *unrelated = device_alloc(MEMORY_DEVICE, bytes);
    int own = rondo_comm_rank(rank->comm);
    rondo_result result;

    if (!fresh || !unrelated)
        return fail(rank, "no memory");
    for (int i = 0; i < COUNT; i++)
        host[i] = own + i % 1000;
    device_copy(fresh, host, bytes);
    result = gpu_come_late(rank, own == late, gettid()); /* the others are in the free */
    if (result)
        return result;
    result = exchanges ? exchange(rank, fresh)
                       : rondo_all_reduce(fresh, fresh, COUNT, RONDO_INT32, RONDO_SUM, rank->comm,
                                          rank->stream);
    device_free(MEMORY_DEVICE, unrelated);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result)
        return fail(rank, "call");
    device_copy(host, fresh, bytes);
    result = rondo_barrier(rank->comm, NULL); /* peers may still read */
    device_free(MEMORY_DEVICE, fresh);
    return result;
}

static rondo_result frees_behind_calls(struct gpu_rank *rank)
{
    int size = rondo_comm_size(rank->comm);
    int32_t *host = malloc(COUNT * sizeof(*host));
    rondo_result result = host ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int late = 0; !result && late < size * ROUNDS; late++) {
        bool exchanges = late / size % 2;

        result = call_and_free(rank, late % size, exchanges, host);
        for (int i = 0; !result && i < COUNT; i++)
            if (host[i] != expected(rank, exchanges, i))
                result = fail(rank, "a wrong result");
    }
    free(host);
    return result;
}

/* ---- Calls that are longer than the reserve ------------------------------------------------ */

/* Buffers that peers have not seen; what is in the input, value() says. */
struct fresh {
    rondo_collective collective;
    size_t count, blocks; /* of the longer buffer */
    int32_t *input, *output, *host;
};

static rondo_result call(const struct gpu_rank *rank, const struct fresh *fresh)
{
    const rondo_call call = {.struct_size = sizeof(call),
                             .collective = fresh->collective,
                             .input = fresh->input,
                             .output = fresh->output,
                             .count = fresh->count,
                             .type = RONDO_INT32,
                             .op = RONDO_SUM,
                             .comm = rank->comm,
                             .stream = rank->stream};

    return rondo_collective_call(&call);
}

static int32_t value(int from, size_t block, size_t i)
{
    return 7 * from + 3 * (int32_t)block + (int32_t)(i % 1000);
}

/* The root is rank 0. How many blocks come out at this rank, and what they are. */
static size_t outputs(const struct gpu_rank *rank, rondo_collective collective)
{
    size_t size = (size_t)rondo_comm_size(rank->comm);
    bool root = rondo_comm_rank(rank->comm) == 0;

    switch (collective) {
    case RONDO_ALL_GATHER:
    case RONDO_ALL_TO_ALL:
        return size;
    case RONDO_GATHER:
        return root ? size : 0;
    case RONDO_REDUCE:
        return root;
    default:
        return 1;
    }
}

static int32_t result_of(const struct gpu_rank *rank, rondo_collective collective, size_t block,
                         size_t i)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    int32_t ranks = 7 * size * (size - 1) / 2;

    switch (collective) {
    case RONDO_ALL_REDUCE:
    case RONDO_REDUCE:
        return ranks + size * (int32_t)(i % 1000);
    case RONDO_REDUCE_SCATTER:
        return ranks + size * (3 * own + (int32_t)(i % 1000));
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        return value((int)block, 0, i);
    case RONDO_ALL_TO_ALL:
        return value((int)block, (size_t)own, i);
    case RONDO_SCATTER:
        return value(0, (size_t)own, i);
    default:
        return value(0, 0, i);
    }
}

static rondo_result check(struct gpu_rank *rank, const struct fresh *fresh)
{
    size_t blocks = outputs(rank, fresh->collective);

    if (!device_copy(fresh->host, fresh->output, blocks * fresh->count * sizeof(int32_t)))
        return fail(rank, "no copy");
    for (size_t block = 0; block < blocks; block++)
        for (size_t i = 0; i < fresh->count; i++)
            if (fresh->host[block * fresh->count + i] !=
                result_of(rank, fresh->collective, block, i))
                return world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                                 "%s: element %zu of block %zu is %d",
                                 rondo_collective_name(fresh->collective), i, block,
                                 fresh->host[block * fresh->count + i]);
    return RONDO_OK;
}

/* The last rank comes when the others are in a free behind the call. */
static rondo_result call_behind_frees(struct gpu_rank *rank, struct fresh *fresh)
{
    size_t bytes = fresh->blocks * fresh->count * sizeof(int32_t);
    int own = rondo_comm_rank(rank->comm);
    void *unrelated = device_alloc(MEMORY_DEVICE, 1);
    rondo_result result;

    fresh->input = device_alloc(MEMORY_DEVICE, bytes);
    fresh->output = device_alloc(MEMORY_DEVICE, bytes);
    if (!fresh->input || !fresh->output || !unrelated)
        return fail(rank, "no memory");
    for (size_t i = 0; i < fresh->blocks * fresh->count; i++)
        fresh->host[i] = value(own, i / fresh->count, i % fresh->count);
    device_copy(fresh->input, fresh->host, bytes);
    result = gpu_come_late(rank, own == rondo_comm_size(rank->comm) - 1, gettid());
    if (result)
        return result;
    result = call(rank, fresh);
    device_free(MEMORY_DEVICE, unrelated);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    result = result ? fail(rank, rondo_collective_name(fresh->collective)) : check(rank, fresh);
    if (!result)
        result = rondo_barrier(rank->comm, NULL); /* peers may still read */
    device_free(MEMORY_DEVICE, fresh->input);
    device_free(MEMORY_DEVICE, fresh->output);
    return result;
}

static rondo_result frees_behind_long_calls(struct gpu_rank *rank)
{
    int collectives = rank->scene->collectives;
    struct fresh fresh = {.count = (size_t)rank->scene->cases, .blocks = 1};
    rondo_result result = RONDO_OK;

    if (collectives > 1)
        fresh.blocks = (size_t)rondo_comm_size(rank->comm);
    fresh.host = malloc(fresh.blocks * fresh.count * sizeof(int32_t));
    if (!fresh.host)
        return RONDO_ERROR_MEMORY;
    for (int i = 0; i < collectives && !result; i++) {
        fresh.collective = (rondo_collective)i;
        result = call_behind_frees(rank, &fresh);
    }
    free(fresh.host);
    return result;
}

rondo_result gpu_frees_behind_long_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, frees_behind_long_calls);
}

rondo_result gpu_frees_behind_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, frees_behind_calls);
}

/* ---- Messages that do not fit together ------------------------------------------------------ */

static rondo_result send_to_all(struct gpu_rank *rank, int32_t *fresh, size_t count)
{
    int size = rondo_comm_size(rank->comm), last = size - 1;
    rondo_result result = rondo_group_start();

    for (int peer = 0; peer < last && !result; peer++)
        if (rondo_comm_rank(rank->comm) == last)
            result = rondo_send(fresh, count, RONDO_INT32, peer, rank->comm, rank->stream);
    if (!result && rondo_comm_rank(rank->comm) != last)
        result = rondo_recv(fresh, count, RONDO_INT32, last, rank->comm, rank->stream);
    return result ? result : rondo_group_end();
}

/* The last rank's messages wait for peers to map them, those for the call, and the call for the
 * messages: when the time is up, all are let go, also the frees. Peers may then map the
 * messages before the last rank sees that the time is up: its call is queued, and the stream ends
 * with the timeout. */
static rondo_result frees_behind_many_messages(struct gpu_rank *rank)
{
    const size_t count = 200000;
    bool last = rondo_comm_rank(rank->comm) == rondo_comm_size(rank->comm) - 1;
    int32_t *fresh = device_alloc(MEMORY_DEVICE, count * sizeof(*fresh));
    void *unrelated = device_alloc(MEMORY_DEVICE, 1);
    rondo_result result;

    if (!fresh || !unrelated)
        return fail(rank, "no memory");
    result = gpu_come_late(rank, last, gettid());
    if (result)
        return result;
    result = send_to_all(rank, fresh, count);
    device_free(MEMORY_DEVICE, unrelated);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    return result == RONDO_ERROR_TIMEOUT ? RONDO_OK : fail(rank, "the call has ended");
}

rondo_result gpu_frees_behind_many_messages(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, frees_behind_many_messages);
}
