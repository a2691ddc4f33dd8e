/* SPDX-License-Identifier: BSD-3-Clause */
#include "behind.h"
#include "../device.h"
#include "../../patience.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 10 };

static void pass(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};

    time.tv_nsec = (long)(1e9 * (seconds - (double)time.tv_sec));
    nanosleep(&time, NULL);
}

/* ---- The timeout ----------------------------------------------------------------------------- */

/* The last rank's stream goes on when the watchdogs of the others have looked at their waits; were
 * it sooner, less would be tried. */
static rondo_result call_late(struct gpu_rank *rank, int32_t *memory, uint32_t *flag)
{
    const double timeout = world_patience(3), look = 0.2;
    bool last = rondo_comm_rank(rank->comm) == rondo_comm_size(rank->comm) - 1;
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);

    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_comm_set_timeout(rank->comm, timeout);
    if (result || !device_hold(rank->cuda_stream, flag))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "%s", rondo_last_error(rank->comm));
    result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);
    if (!result)
        result = rondo_barrier(rank->outer, NULL);
    if (!result)
        pass(timeout + (last ? 2 * look : look));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    return result ? world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm)) : result;
}

static rondo_result older_than_the_timeout(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    uint32_t *flag = device_alloc(MEMORY_PINNED, sizeof(*flag));
    rondo_result result = memory && flag ? call_late(rank, memory, flag) : RONDO_ERROR_MEMORY;

    if (result) /* the stream may be stuck */
        return result;
    device_free(MEMORY_DEVICE, memory);
    device_free(MEMORY_PINNED, flag);
    return rondo_comm_finalize(rank->comm);
}

rondo_result gpu_calls_older_than_the_timeout(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, older_than_the_timeout);
}

/* ---- Closing --------------------------------------------------------------------------------- */

struct closing {
    struct gpu_rank within;
    int32_t *memory;
    uint32_t *flag;
    pid_t closer;
};

static rondo_result call(const struct closing *closing)
{
    return rondo_all_reduce(closing->memory, closing->memory, COUNT, RONDO_INT32, RONDO_SUM,
                            closing->within.comm, closing->within.stream);
}

/* From here on calls outside of graphs are handed over by their streams as well. */
static rondo_result capture(struct closing *closing)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_result result;

    if (cuda->cuStreamBeginCapture(closing->within.cuda_stream,
                                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return RONDO_ERROR_SYSTEM;
    result = call(closing);
    if (cuda->cuStreamEndCapture(closing->within.cuda_stream, &graph))
        return RONDO_ERROR_SYSTEM;
    cuda->cuGraphDestroy(graph);
    return result;
}

/* The stream goes on when the closer waits for it. */
static void *let_go(void *argument)
{
    struct closing *closing = argument;

    world_await_sleep(closing->closer);
    __atomic_store_n(closing->flag, 1, __ATOMIC_RELEASE);
    return NULL;
}

static rondo_result close_before_call(struct closing *closing)
{
    struct gpu_rank *within = &closing->within;
    pthread_t thread;
    rondo_result result = capture(closing);

    if (!result && !device_hold(within->cuda_stream, closing->flag))
        result = RONDO_ERROR_SYSTEM;
    if (!result)
        result = call(closing);
    if (result || pthread_create(&thread, NULL, let_go, closing))
        return world_say(within->sentence, RONDO_ERROR_SYSTEM, "%s", rondo_last_error(NULL));
    rondo_comm_close(within->comm);
    pthread_join(thread, NULL);
    result = rondo_stream_synchronize(within->stream);
    return result ? world_say(within->sentence, result, "%s", rondo_last_error(NULL)) : RONDO_OK;
}

static rondo_result close_behind(struct gpu_rank *rank)
{
    int32_t host[COUNT], size = rondo_comm_size(rank->comm), sum = size * (size + 1) / 2;
    struct closing closing = {.within = *rank,
                              .memory = device_alloc(MEMORY_DEVICE, sizeof(host)),
                              .flag = device_alloc(MEMORY_PINNED, sizeof(uint32_t)),
                              .closer = gettid()};
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_result result = closing.memory && closing.flag ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int i = 0; i < COUNT; i++)
        host[i] = rondo_comm_rank(rank->comm) + 1;
    if (!result && !device_copy(closing.memory, host, sizeof(host)))
        result = RONDO_ERROR_SYSTEM;
    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    if (!result)
        result = rondo_comm_split(rank->comm, 0, 0, &config, &closing.within.comm);
    if (!result)
        result = close_before_call(&closing);
    if (result) /* the stream may be stuck */
        return result;
    device_copy(host, closing.memory, sizeof(host));
    for (int i = 0; i < COUNT && !result; i++)
        if (host[i] != sum)
            result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "element %d is %d, not %d", i,
                               host[i], sum);
    device_free(MEMORY_DEVICE, closing.memory);
    device_free(MEMORY_PINNED, closing.flag);
    return result;
}

rondo_result gpu_closes_before_a_call(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_behind);
}
