/* SPDX-License-Identifier: BSD-3-Clause */
/* same_bits.c - sums of floats that round: the same bits on the device as on the host, whatever the
 * links between devices make of the plan, in place or not. */
#include "bodies.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 60001 };

struct buffers {
    float *host, *sums, *copy; /* on the host */
    float *input, *output;     /* on the device */
};

static bool buffers_open(struct buffers *b)
{
    size_t bytes = MOST * sizeof(float);

    b->host = malloc(bytes);
    b->sums = malloc(bytes);
    b->copy = malloc(bytes);
    b->input = device_alloc(MEMORY_DEVICE, bytes);
    b->output = device_alloc(MEMORY_DEVICE, bytes);
    return b->host && b->sums && b->copy && b->input && b->output;
}

static void buffers_close(struct buffers *b)
{
    device_free(MEMORY_DEVICE, b->input);
    device_free(MEMORY_DEVICE, b->output);
    free(b->host);
    free(b->sums);
    free(b->copy);
}

static void fill(float *numbers, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(world_hash(i, (uint64_t)rank) % 1000003) * 1.1e-5f - 5;
}

static rondo_result sum_both(struct gpu_rank *rank, const struct buffers *b, size_t count,
                             rondo_op op)
{
    size_t bytes = count * sizeof(float);
    float *output = count % 2 ? b->input : b->output; /* some in place */
    rondo_result result;

    fill(b->host, count, rondo_comm_rank(rank->comm));
    if (!device_copy(b->input, b->host, bytes))
        return RONDO_ERROR_SYSTEM;
    result = rondo_all_reduce(b->host, b->sums, count, RONDO_FLOAT32, op, rank->comm, NULL);
    if (!result)
        result =
            rondo_all_reduce(b->input, output, count, RONDO_FLOAT32, op, rank->comm, rank->stream);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result || !device_copy(b->copy, output, bytes))
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "all_reduce: %s",
                         rondo_last_error(rank->comm));
    if (memcmp(b->copy, b->sums, bytes) == 0)
        return RONDO_OK;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "other bits of %zu floats", count);
}

static rondo_result compare(struct gpu_rank *rank)
{
    static const size_t counts[] = {1, 5, 999, 8192, 20001, 40000, MOST};
    struct buffers b = {0};
    rondo_result result = buffers_open(&b) ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]) && !result; i++)
        result = sum_both(rank, &b, counts[i / 2], i % 2 ? RONDO_AVG : RONDO_SUM);
    if (!result)
        result = rondo_comm_finalize(rank->comm); /* nobody frees what a peer may still read */
    buffers_close(&b);
    return result;
}

rondo_result gpu_keeps_bits(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, compare);
}
