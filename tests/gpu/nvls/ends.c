/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - communicators that end while peers still use the team, and what is given back then. */
#include "../device.h"
#include "bodies.h"

#include <string.h>

enum {
    COUNT = 40000,
    ROUNDS = 5,
    MOST = 16 << 20 /* bytes: a team of 8 MiB, and what is kept for the next communicator */
};

/* The communicator of the scene, by which ranks meet; each process has its own. */
static _Thread_local rondo_comm *outer;

static rondo_result call(struct gpu_rank *rank)
{
    size_t bytes = COUNT * sizeof(float);
    float *memory = device_alloc(MEMORY_DEVICE, 2 * bytes);
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result)
        result = rondo_all_reduce(memory, memory + COUNT, COUNT, RONDO_FLOAT32, RONDO_SUM,
                                  rank->comm, rank->stream);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

static rondo_result call_once(struct gpu_rank *rank)
{
    long before = device_kernels("rondo_nvls");
    rondo_result result = call(rank);

    if (!result && before >= 0 && device_kernels("rondo_nvls") == before)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "no multicast");
    return result;
}

/* Make the call that the victim does not make: it has closed by now. */
static rondo_result call_in_vain(struct gpu_rank *rank)
{
    rondo_result result = call_once(rank);

    if (result || rondo_comm_rank(rank->comm) == rank->scene->victim)
        return result;
    result = rondo_barrier(outer, NULL);
    if (!result)
        result = call(rank);
    if (result == RONDO_ERROR_PEER && strstr(rondo_last_error(rank->comm), "has closed"))
        return RONDO_OK;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "got %s: %s",
                     rondo_result_string(result), rondo_last_error(rank->comm));
}

rondo_result nvls_is_closed_by_one(rondo_comm *comm, void *scene, char *sentence)
{
    rondo_result result;

    outer = comm;
    result = gpu_rank_run(comm, scene, sentence, call_in_vain);
    if (!result && rondo_comm_rank(comm) == ((struct gpu_scene *)scene)->victim)
        result = rondo_barrier(comm, NULL);
    return result;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Bytes of the device's memory that nobody has. */
static size_t left_over(void)
{
    size_t left = 0, total;

    return device_driver()->cuMemGetInfo(&left, &total) ? 0 : left;
}

/* All ranks have closed the communicator before when the next one is opened: the last one's memory
 * may still be there, but no other's. */
rondo_result nvls_comes_and_goes(rondo_comm *comm, void *scene, char *sentence)
{
    size_t first = 0, left;
    rondo_result result = RONDO_OK;

    for (int round = 0; round < ROUNDS && !result; round++) {
        result = gpu_rank_run(comm, scene, sentence, call_once);
        left = left_over();
        first = round ? first : left;
        if (!result && left + MOST < first)
            result = world_say(sentence, RONDO_ERROR_INTERNAL,
                               "round %d left %zu bytes of the device, and the first %zu", round,
                               left, first);
        if (!result)
            result = rondo_barrier(comm, NULL);
    }
    return result;
}
