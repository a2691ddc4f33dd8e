/* SPDX-License-Identifier: BSD-3-Clause */
/* test_blocks.c - who pins memory for a call by way of the host waits, as a driver may, for what
 * streams have begun on the host. */
#include "../../patience.h"
#include "../bodies.h"
#include "../device.h"

#include "rondo/cuda.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { COUNT = 100 };

/* A function of the host, which runs until it is let go. */
struct holding {
    sem_t begun, let_go;
};

static void hold(void *context)
{
    struct holding *holding = context;

    sem_post(&holding->begun);
    while (sem_wait(&holding->let_go))
        ;
}

/* When this rank pins, and the stream of its first call is about to hand that over. */
static void *let_go(void *context)
{
    pid_t own = getpid();

    if (device_standin_stop())
        world_await_quiet(&own, 1);
    sem_post(&((struct holding *)context)->let_go);
    return NULL;
}

static rondo_result call(const struct gpu_rank *rank, int32_t *memory)
{
    return rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, rank->comm,
                            rank->stream);
}

/* From a capture on, calls are handed over by their streams. */
static rondo_result capture(const struct gpu_rank *rank, int32_t *memory)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_result result = RONDO_ERROR_SYSTEM;

    if (!cuda->cuStreamBeginCapture(rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        result = call(rank, memory);
    if (cuda->cuStreamEndCapture(rank->cuda_stream, &graph) || cuda->cuGraphDestroy(graph))
        return RONDO_ERROR_SYSTEM;
    return result;
}

/* The first call has a block that was another's; the second one needs one more. */
static rondo_result call_beside(const struct gpu_rank *rank, rondo_stream *other, int32_t *memory)
{
    struct holding holding;
    pthread_t thread;
    rondo_result result = call(rank, memory);

    sem_init(&holding.begun, 0, 0);
    sem_init(&holding.let_go, 0, 0);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_stream_call(other, hold, &holding);
    if (result)
        return result;
    while (sem_wait(&holding.begun))
        ;
    result = call(rank, memory);
    if (pthread_create(&thread, NULL, let_go, &holding))
        return RONDO_ERROR_SYSTEM;
    if (!result)
        result = call(rank, memory);
    pthread_join(thread, NULL);
    return result ? result : rondo_stream_synchronize(other);
}

static rondo_result pin_beside(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_stream *other;
    CUstream stream;
    rondo_result result = RONDO_ERROR_SYSTEM;

    if (!memory || device_driver()->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        rondo_stream_open_cuda(stream, &other))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no stream");
    result = capture(rank, memory);
    if (!result)
        result = call_beside(rank, other, memory);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    rondo_stream_close(other);
    device_driver()->cuStreamDestroy(stream);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

static rondo_result pins_beside(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, pin_beside);
}

Test(gpu_blocks, a_stream_hands_over_a_call_while_memory_of_another_is_pinned)
{
    static struct world_report report;
    struct gpu_scene scene = {.devices = 1, .host = true};
    const struct world world = {.size = 1, .processes = true};

    cr_assert(world_run(&world, pins_beside, &scene, &report) == 0, "%s", report.summary);
}
