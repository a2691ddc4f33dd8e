/* SPDX-License-Identifier: BSD-3-Clause */
#include "moves.h"

#include "../device.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const rondo_collective collectives[] = {RONDO_ALL_GATHER, RONDO_BROADCAST, RONDO_ALL_TO_ALL,
                                               RONDO_GATHER, RONDO_SCATTER};
/* The last one is longer than the reserve of some tests, so that it goes in pieces. */
static const size_t counts[] = {0, 1, 999, 40009, 300001};

enum { COLLECTIVES = 5, COUNTS = 5, MOST = 300001 };

struct buffers {
    int32_t *input, *output, *host;
    size_t bytes; /* of each */
};

struct call {
    rondo_collective collective;
    size_t count;
    int root;
    bool in_place;
};

static bool buffers_open(struct buffers *b, int size)
{
    b->bytes = (size_t)size * MOST * sizeof(int32_t);
    b->host = malloc(b->bytes);
    b->input = device_alloc(MEMORY_DEVICE, b->bytes);
    b->output = device_alloc(MEMORY_DEVICE, b->bytes);
    return b->host && b->input && b->output;
}

static void buffers_close(struct buffers *b)
{
    device_free(MEMORY_DEVICE, b->input);
    device_free(MEMORY_DEVICE, b->output);
    free(b->host);
}

/* Element i of a rank's input; another one in every call. */
static int32_t value(const struct call *call, int rank, size_t i)
{
    return (int32_t)(rank * 1000003 + (int)i * 7 + (int)call->collective + (int)call->count);
}

static rondo_result make(const struct gpu_rank *rank, const struct call *call, const int32_t *input,
                         int32_t *output)
{
    rondo_comm *comm = rank->comm;
    size_t count = call->count;

    switch (call->collective) {
    case RONDO_ALL_GATHER:
        return rondo_all_gather(input, output, count, RONDO_INT32, comm, rank->stream);
    case RONDO_BROADCAST:
        return rondo_broadcast(input, output, count, RONDO_INT32, call->root, comm, rank->stream);
    case RONDO_ALL_TO_ALL:
        return rondo_all_to_all(input, output, count, RONDO_INT32, comm, rank->stream);
    case RONDO_GATHER:
        return rondo_gather(input, output, count, RONDO_INT32, call->root, comm, rank->stream);
    default:
        return rondo_scatter(input, output, count, RONDO_INT32, call->root, comm, rank->stream);
    }
}

/* Returns what element i of a rank's output has to be. */
static int32_t expected(const struct call *call, int rank, size_t i)
{
    size_t block = i / call->count, at = i % call->count;

    switch (call->collective) {
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        return value(call, (int)block, at);
    case RONDO_BROADCAST:
        return value(call, call->root, i);
    case RONDO_ALL_TO_ALL:
        return value(call, (int)block, (size_t)rank * call->count + at);
    default:
        return value(call, call->root, (size_t)rank * call->count + i);
    }
}

static size_t output_count(const struct call *call, int rank, int size)
{
    if (call->collective == RONDO_GATHER && rank != call->root)
        return 0;
    return call->collective == RONDO_BROADCAST || call->collective == RONDO_SCATTER
               ? call->count
               : (size_t)size * call->count;
}

static rondo_result check(const struct gpu_rank *rank, const struct buffers *b,
                          const struct call *call, const int32_t *output)
{
    int own = rondo_comm_rank(rank->comm), size = rondo_comm_size(rank->comm);
    size_t count = output_count(call, own, size);

    if (!device_copy(b->host, output, count * sizeof(*output)))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no copy from the device");
    for (size_t i = 0; i < count; i++)
        if (b->host[i] != expected(call, own, i))
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                             "collective %d of %zu: element %zu is %d, not %d",
                             (int)call->collective, call->count, i, b->host[i],
                             expected(call, own, i));
    return RONDO_OK;
}

static rondo_result run(const struct gpu_rank *rank, const struct buffers *b,
                        const struct call *call)
{
    int own = rondo_comm_rank(rank->comm), size = rondo_comm_size(rank->comm);
    size_t inputs = (size_t)size * call->count;
    bool root_only = call->collective == RONDO_GATHER || call->collective == RONDO_SCATTER;
    int32_t *input = b->input, *output = b->output;
    rondo_result result;

    if (call->in_place && call->collective == RONDO_ALL_GATHER)
        input = output + (size_t)own * call->count;
    else if (call->in_place && !root_only)
        output = input;
    if (input != b->input)
        inputs = call->count;
    for (size_t i = 0; i < inputs; i++)
        b->host[i] = value(call, own, i);
    if (!device_copy(input, b->host, inputs * sizeof(*input)))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no copy to the device");
    result = make(rank, call, input, output);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    return result ? result : check(rank, b, call, output);
}

static rondo_result run_all(const struct gpu_rank *rank, const struct buffers *b)
{
    int size = rondo_comm_size(rank->comm);
    rondo_result result = RONDO_OK;

    for (int c = 0; c < COLLECTIVES; c++)
        for (int n = 0; n < COUNTS; n++)
            for (int in_place = 0; in_place < 2 && !result; in_place++)
                result = run(rank, b,
                             &(struct call){.collective = collectives[c],
                                            .count = counts[n],
                                            .root = (c + n) % size,
                                            .in_place = in_place});
    return result;
}

static rondo_result count_kernels(struct gpu_rank *rank)
{
    struct buffers b = {0};
    rondo_result result =
        buffers_open(&b, rondo_comm_size(rank->comm)) ? RONDO_OK : RONDO_ERROR_MEMORY;
    long before = device_kernels(NULL), launched;

    if (!result)
        result = run_all(rank, &b);
    launched = device_kernels(NULL) - before;
    if (!result && before >= 0 && (launched > 0) == (rank->scene->cases == 1))
        result =
            world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%ld kernels were launched", launched);
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    buffers_close(&b);
    return result;
}

rondo_result moves_run(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, count_kernels);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* The communicator of the scene, by which ranks meet; each process has its own. */
static rondo_comm *outer;

static rondo_result call_in_vain(struct gpu_rank *rank)
{
    const struct call call = {.collective = RONDO_ALL_GATHER, .count = MOST};
    struct buffers b = {0};
    rondo_result result =
        buffers_open(&b, rondo_comm_size(rank->comm)) ? RONDO_OK : RONDO_ERROR_MEMORY;
    bool victim = rondo_comm_rank(rank->comm) == rank->scene->victim;

    if (!result)
        result = run(rank, &b, &call);
    if (!result && !victim)
        result = rondo_barrier(outer, NULL);
    if (!result && !victim) {
        result = run(rank, &b, &call);
        if (result == RONDO_ERROR_PEER && strstr(rondo_last_error(rank->comm), "has closed"))
            result = RONDO_OK;
        else
            result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "got %s: %s",
                               rondo_result_string(result), rondo_last_error(rank->comm));
    }
    buffers_close(&b);
    return result;
}

rondo_result moves_miss_one(rondo_comm *comm, void *scene, char *sentence)
{
    rondo_result result;

    outer = comm;
    result = gpu_rank_run(comm, scene, sentence, call_in_vain);
    if (!result && rondo_comm_rank(comm) == ((struct gpu_scene *)scene)->victim)
        result = rondo_barrier(comm, NULL);
    return result;
}
