/* SPDX-License-Identifier: BSD-3-Clause */
/* groups.c - one thread makes the calls of all ranks, as programs with several GPUs do. */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000, RANKS = 8, ROUNDS = 5 };

struct crew {
    int size;
    rondo_comm *comms[RANKS];
    CUstream cuda_streams[RANKS];
    rondo_stream *streams[RANKS];
    int32_t *memory[RANKS]; /* input, then output */
};

static rondo_result open_crew(struct crew *crew, bool one_stream)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_result result;

    config.cuda_device = 0;
    if (!device_use(0))
        return RONDO_ERROR_SYSTEM;
    result = rondo_comm_open_all(crew->size, &config, crew->comms);
    for (int i = 0; i < crew->size && !result; i++) {
        crew->memory[i] = device_alloc(MEMORY_DEVICE, 2 * COUNT * sizeof(int32_t));
        if (!one_stream && device_driver()->cuStreamCreate(&crew->cuda_streams[i], 0))
            result = RONDO_ERROR_SYSTEM;
        if (!result)
            result = rondo_stream_open_cuda(crew->cuda_streams[i], &crew->streams[i]);
    }
    /* One CUDA stream, the legacy default one, and even one stream of ours. */
    for (int i = 1; i < crew->size && one_stream && !result; i++) {
        rondo_stream_close(crew->streams[i]);
        crew->streams[i] = crew->streams[0];
    }
    return result;
}

static void close_crew(struct crew *crew, bool one_stream)
{
    for (int i = 0; i < crew->size; i++) {
        if (!one_stream || !i)
            rondo_stream_close(crew->streams[i]);
        rondo_comm_close(crew->comms[i]);
        if (crew->cuda_streams[i])
            device_driver()->cuStreamDestroy(crew->cuda_streams[i]);
        device_free(MEMORY_DEVICE, crew->memory[i]);
    }
}

/* Each round doubles up: the outputs of one are added up in the same group. */
static rondo_result call_all(struct crew *crew)
{
    rondo_result result = rondo_group_start();

    for (int i = 0; i < crew->size && !result; i++) {
        int32_t *input = crew->memory[i];

        result = rondo_all_reduce(input, input + COUNT, COUNT, RONDO_INT32, RONDO_SUM,
                                  crew->comms[i], crew->streams[i]);
        if (!result)
            result = rondo_all_reduce(input + COUNT, input + COUNT, COUNT, RONDO_INT32, RONDO_MAX,
                                      crew->comms[i], crew->streams[i]);
    }
    return result ? result : rondo_group_end();
}

static rondo_result check_all(struct crew *crew, int round, char *sentence)
{
    static int32_t host[COUNT];
    int size = crew->size;

    for (int i = 0; i < size; i++) {
        rondo_result result = rondo_stream_synchronize(crew->streams[i]);

        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(NULL));
        device_copy(host, crew->memory[i] + COUNT, sizeof(host));
        for (int k = 0; k < COUNT; k++)
            if (host[k] != size * (round + k) + size * (size - 1) / 2)
                return world_say(sentence, RONDO_ERROR_INTERNAL, "rank %d, element %d is %d", i, k,
                                 host[k]);
    }
    return RONDO_OK;
}

rondo_result gpu_runs_in_one_thread(int size, bool one_stream, char *sentence)
{
    static int32_t host[COUNT];
    struct crew crew = {.size = size};
    rondo_result result;

    result = open_crew(&crew, one_stream);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(NULL));
    for (int round = 0; round < ROUNDS && !result; round++) {
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < COUNT; k++)
                host[k] = round + k + i;
            device_copy(crew.memory[i], host, sizeof(host));
        }
        result = call_all(&crew);
        result = result ? world_say(sentence, result, "%s", rondo_last_error(NULL))
                        : check_all(&crew, round, sentence);
    }
    close_crew(&crew, one_stream);
    return result;
}
