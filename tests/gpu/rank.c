/* SPDX-License-Identifier: BSD-3-Clause */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SPINS_US = 100000 }; /* how long a thread needs to get into the driver, by far */

static rondo_result open_streams(struct gpu_rank *rank)
{
    const struct device_driver *cuda = device_driver();
    CUstream stream;
    rondo_result result;

    if (!cuda || cuda->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "no CUDA stream");
    rank->cuda_stream = stream;
    result = rondo_stream_open_cuda(stream, &rank->stream);
    if (result)
        world_say(rank->sentence, result, "stream: %s", rondo_last_error(NULL));
    return result;
}

/* Where there are fewer devices than the scene asks for, ranks share those that are there. */
static int device_of(int rank, const struct gpu_scene *scene)
{
    int there = device_count();

    return rank % (scene->devices < there || there < 1 ? scene->devices : there);
}

rondo_result gpu_rank_run(rondo_comm *comm, const struct gpu_scene *scene, char *sentence,
                          gpu_body body)
{
    int number = device_of(rondo_comm_rank(comm), scene);
    struct gpu_rank rank = {.outer = comm, .scene = scene, .sentence = sentence};
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_result result;

    setenv("RONDO_CUDA", scene->host ? "host" : "auto", 1);
    if (!device_use(number))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no device %d", number);
    config.cuda_device = number;
    result = rondo_comm_split(comm, 0, rondo_comm_rank(comm), &config, &rank.comm);
    if (result)
        return world_say(sentence, result, "split: %s", rondo_last_error(comm));
    if (rondo_comm_cuda_device(rank.comm) != number)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the device is %d, not %d",
                           rondo_comm_cuda_device(rank.comm), number);
    if (!result)
        result = open_streams(&rank);
    if (!result)
        result = body(&rank);
    if (!result && !rondo_comm_query(rank.comm)) /* it may be broken on purpose */
        result = rondo_stream_synchronize(rank.stream);
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(NULL));
    rondo_stream_close(rank.stream);
    rondo_comm_close(rank.comm);
    if (rank.cuda_stream)
        device_driver()->cuStreamDestroy(rank.cuda_stream);
    return result;
}

/* A GPU's driver spins where the stand-in sleeps, so nobody sees whether a thread waits in it. If
 * it does not yet, less is tried than should be, and nothing fails. */
static bool await_wait(pid_t thread)
{
    if (device_standin_stop())
        return world_await_sleep(thread);
    usleep(SPINS_US);
    return true;
}

rondo_result gpu_come_late(struct gpu_rank *rank, bool late, pid_t thread)
{
    int64_t own = thread, all[WORLD_RANKS];
    rondo_result result = rondo_all_gather(&own, all, 1, RONDO_INT64, rank->outer, NULL);

    for (int i = 0; i < rondo_comm_size(rank->outer) && late && !result; i++)
        if (i != rondo_comm_rank(rank->outer) && !await_wait((pid_t)all[i]))
            result = RONDO_ERROR_INTERNAL;
    return result ? world_say(rank->sentence, result, "rank %d does not find the others waiting",
                              rondo_comm_rank(rank->outer))
                  : RONDO_OK;
}

void gpu_gives_graphs_channels(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

const char *gpu_ranks_fail(world_body body, int size, bool processes, bool host)
{
    static struct world_report report;
    static char said[sizeof(report.summary) + 64];
    struct gpu_scene scene = {.devices = 2, .host = host};
    struct world world = {.size = size, .processes = processes};

    gpu_gives_graphs_channels();
    if (world_run(&world, body, &scene, &report) == 0)
        return NULL;
    snprintf(said, sizeof(said), "%d ranks%s: %s", size, host ? ", by the host" : "",
             report.summary);
    return said;
}

bool gpu_threads_launch_graphs(int size)
{
    return size == 1 || device_count() > 1;
}
