/* SPDX-License-Identifier: BSD-3-Clause */
/* test_counts.c - a communicator has calls on their way until it is closed, and no longer; graphs
 * count as such. */
#include "../bodies.h"
#include "../device.h"

#include "cuda/stock.h"
#include "rondo/cuda.h"

#include <criterion/criterion.h>

enum { COUNT = 100 };

static rondo_result capture(const struct gpu_rank *rank, rondo_comm *comm, int32_t *memory,
                            CUgraph *ret_graph)
{
    const struct device_driver *cuda = device_driver();
    rondo_result result;

    if (cuda->cuStreamBeginCapture(rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return RONDO_ERROR_SYSTEM;
    result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, comm, rank->stream);
    return cuda->cuStreamEndCapture(rank->cuda_stream, ret_graph) ? RONDO_ERROR_SYSTEM : result;
}

/* With a call or a graph on its way until the communicator is closed. */
static rondo_result close_broken(const struct gpu_rank *rank, rondo_comm *comm, rondo_result result)
{
    if (!result && !cuda_has_inflights())
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "nothing is on its way");
    if (!result)
        result = rondo_barrier(rank->comm, NULL);
    if (!result)
        result = rondo_comm_abort(comm);
    rondo_comm_close(comm);
    if (!result && cuda_has_inflights())
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "a closed one has calls");
    return result;
}

static rondo_result leave_graph(const struct gpu_rank *rank, rondo_comm *comm, int32_t *memory)
{
    CUgraph graph = NULL;
    rondo_result result = close_broken(rank, comm, capture(rank, comm, memory, &graph));

    device_driver()->cuGraphDestroy(graph);
    return result;
}

/* The stream comes to the call when its communicator has been closed. */
static rondo_result leave_call(const struct gpu_rank *rank, rondo_comm *comm, int32_t *memory)
{
    uint32_t *flag = device_alloc(MEMORY_PINNED, sizeof(*flag));
    rondo_result result = RONDO_ERROR_SYSTEM;

    *flag = 0;
    if (device_hold(rank->cuda_stream, flag))
        result =
            rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, comm, rank->stream);
    result = close_broken(rank, comm, result);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    (void)device_driver()->cuStreamSynchronize(rank->cuda_stream);
    device_free(MEMORY_PINNED, flag);
    return result;
}

/* Unmapping and freeing is put off while calls are on their way: not for ever. */
static rondo_result leave_behind(struct gpu_rank *rank, bool graph)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm = NULL;
    rondo_result result;

    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    result = rondo_comm_split(rank->comm, 0, rondo_comm_rank(rank->comm), &config, &comm);
    if (!result)
        result = (graph ? leave_graph : leave_call)(rank, comm, memory);
    (void)rondo_stream_synchronize(rank->stream); /* it tells once what was spoilt */
    device_free(MEMORY_DEVICE, memory);
    return result;
}

static rondo_result close_with_graph(struct gpu_rank *rank)
{
    return leave_behind(rank, true);
}

static rondo_result close_with_call(struct gpu_rank *rank)
{
    return leave_behind(rank, false);
}

static rondo_result closes_with_graph(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_with_graph);
}

static rondo_result closes_with_call(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_with_call);
}

static void expect(world_body body, bool host)
{
    static struct world_report report;
    struct gpu_scene scene = {.devices = 2, .host = host};
    const struct world world = {.size = 2, .processes = true};

    cr_assert(world_run(&world, body, &scene, &report) == 0, "%s", report.summary);
}

Test(gpu_counts, graphs_of_a_closed_communicator_are_no_calls_on_their_way)
{
    expect(closes_with_graph, false);
}

Test(gpu_counts, calls_that_a_closed_communicator_left_are_not_on_their_way)
{
    expect(closes_with_call, false);
}

Test(gpu_counts, calls_by_way_of_the_host_are_on_their_way_as_well)
{
    expect(closes_with_call, true);
    expect(closes_with_graph, true);
}
