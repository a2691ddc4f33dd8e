/* SPDX-License-Identifier: BSD-3-Clause */
/* test_counts.c - a communicator that was closed has no calls on their way, its graphs neither. */
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

/* Unmapping and freeing is put off while calls are on their way: not for ever. */
static rondo_result close_with_graph(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_config config = RONDO_CONFIG_INIT;
    CUgraph graph = NULL;
    rondo_comm *comm = NULL;
    rondo_result result;

    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    result = rondo_comm_split(rank->comm, 0, rondo_comm_rank(rank->comm), &config, &comm);
    if (!result)
        result = capture(rank, comm, memory, &graph);
    if (!result && !cuda_has_inflights())
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "a graph may be launched");
    if (!result)
        result = rondo_barrier(rank->comm, NULL);
    if (!result)
        result = rondo_comm_abort(comm);
    rondo_comm_close(comm);
    if (!result && cuda_has_inflights())
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "a closed one has calls");
    (void)rondo_stream_synchronize(rank->stream); /* it tells once that the graph is spoilt */
    device_driver()->cuGraphDestroy(graph);
    device_free(MEMORY_DEVICE, memory);
    return result;
}

static rondo_result closes_with_graph(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_with_graph);
}

Test(gpu_counts, graphs_of_a_closed_communicator_are_no_calls_on_their_way)
{
    static struct world_report report;
    struct gpu_scene scene = {.devices = 2};
    const struct world world = {.size = 2, .processes = true};

    cr_assert(world_run(&world, closes_with_graph, &scene, &report) == 0, "%s", report.summary);
}
