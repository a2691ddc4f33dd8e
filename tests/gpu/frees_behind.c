/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frees_behind.c - device memory is freed behind a call that cannot end yet.
 *
 * A GPU's driver lets a free wait until the device has done all work of the process. If that is a
 * call whose peer is late, and whose memory this process has still to map, whoever maps must not
 * need what the free holds: the ranks would wait for each other for ever. The stand-in's free holds
 * it if CUDA_STANDIN_FREE_LOCKS=1. What the calls bring is checked, too.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 1 << 20, ROUNDS = 3, LATE_US = 100000 };

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
    if (own == late)
        usleep(LATE_US);
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

rondo_result gpu_frees_behind_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, frees_behind_calls);
}
