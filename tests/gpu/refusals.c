/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refusals.c - device memory that a rank's driver does not map for it: CUDA IPC does not work
 * between PID namespaces or parts of a device, and may fail later for one allocation.
 *
 * Here the stand-in refuses, in one rank or in all; CUDA is not in use yet in the rank's process.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 100000, SHORT_COUNT = 64, BLOCKS = 1000 };

static rondo_result fail(struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(rank->comm));
}

/* ---- Calls of several collectives ------------------------------------------------------------ */

struct memory {
    int32_t *input, *output; /* on the device */
    int32_t *host;
};

static rondo_result all_reduce(struct gpu_rank *rank, const struct memory *memory, int count)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);

    for (int i = 0; i < count; i++)
        memory->host[i] = own + i;
    device_copy(memory->input, memory->host, (size_t)count * sizeof(int32_t));
    if (rondo_all_reduce(memory->input, memory->output, (size_t)count, RONDO_INT32, RONDO_SUM,
                         rank->comm, rank->stream) ||
        rondo_stream_synchronize(rank->stream))
        return fail(rank, "all_reduce");
    device_copy(memory->host, memory->output, (size_t)count * sizeof(int32_t));
    for (int i = 0; i < count; i++)
        if (memory->host[i] != size * i + size * (size - 1) / 2)
            return fail(rank, "a wrong sum");
    return RONDO_OK;
}

static rondo_result all_to_all(struct gpu_rank *rank, const struct memory *memory)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    size_t bytes = (size_t)size * BLOCKS * sizeof(int32_t);

    for (int i = 0; i < size * BLOCKS; i++)
        memory->host[i] = own * 1000000 + i;
    device_copy(memory->input, memory->host, bytes);
    if (rondo_all_to_all(memory->input, memory->output, BLOCKS, RONDO_INT32, rank->comm,
                         rank->stream) ||
        rondo_stream_synchronize(rank->stream))
        return fail(rank, "all_to_all");
    device_copy(memory->host, memory->output, bytes);
    for (int i = 0; i < size * BLOCKS; i++)
        if (memory->host[i] != i / BLOCKS * 1000000 + own * BLOCKS + i % BLOCKS)
            return fail(rank, "all_to_all: a wrong word");
    return RONDO_OK;
}

static rondo_result pass_on(struct gpu_rank *rank, const struct memory *memory)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    int next = (own + 1) % size, before = (own + size - 1) % size;

    for (int i = 0; i < COUNT; i++)
        memory->host[i] = own - i;
    device_copy(memory->input, memory->host, COUNT * sizeof(int32_t));
    if (rondo_group_start() ||
        rondo_send(memory->input, COUNT, RONDO_INT32, next, rank->comm, rank->stream) ||
        rondo_recv(memory->output, COUNT, RONDO_INT32, before, rank->comm, rank->stream) ||
        rondo_group_end() || rondo_stream_synchronize(rank->stream))
        return fail(rank, "messages");
    device_copy(memory->host, memory->output, COUNT * sizeof(int32_t));
    for (int i = 0; i < COUNT; i++)
        if (memory->host[i] != before - i)
            return fail(rank, "a wrong message");
    return RONDO_OK;
}

static rondo_result run_calls(struct gpu_rank *rank)
{
    struct memory memory = {.input = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t)),
                            .output = device_alloc(MEMORY_DEVICE, COUNT * sizeof(int32_t)),
                            .host = malloc(COUNT * sizeof(int32_t))};
    rondo_result result =
        memory.input && memory.output && memory.host ? RONDO_OK : fail(rank, "no memory");

    for (int round = 0; round < 2 && !result; round++) {
        result = all_reduce(rank, &memory, COUNT);
        if (!result)
            result = all_reduce(rank, &memory, SHORT_COUNT);
        if (!result)
            result = all_to_all(rank, &memory);
        if (!result)
            result = pass_on(rank, &memory);
    }
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, memory.input);
    device_free(MEMORY_DEVICE, memory.output);
    free(memory.host);
    return result;
}

rondo_result gpu_goes_without_handles(rondo_comm *comm, void *argument, char *sentence)
{
    const struct gpu_scene *scene = argument;

    if (scene->failing && (scene->victim < 0 || scene->victim == rondo_comm_rank(comm)))
        setenv("CUDA_STANDIN_FAIL", scene->failing, 1);
    return gpu_rank_run(comm, scene, sentence, run_calls);
}
