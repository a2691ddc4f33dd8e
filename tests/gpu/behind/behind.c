/* SPDX-License-Identifier: BSD-3-Clause */
#include "behind.h"
#include "../device.h"

#include "rondo/cuda.h"

#include <stdint.h>
#include <time.h>

enum { COUNT = 10 };

/* The stream does nothing from now on until the flag is set. */
static bool hold(const struct gpu_rank *rank, uint32_t *flag)
{
    CUdeviceptr address;

    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    return !device_driver()->cuMemHostGetDevicePointer(&address, flag, 0) &&
           !device_driver()->cuStreamWaitValue32(rank->cuda_stream, address, 1,
                                                 CU_STREAM_WAIT_VALUE_EQ);
}

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
    const double timeout = 3, look = 0.2;
    bool last = rondo_comm_rank(rank->comm) == rondo_comm_size(rank->comm) - 1;
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);

    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_comm_set_timeout(rank->comm, timeout);
    if (result || !hold(rank, flag))
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
