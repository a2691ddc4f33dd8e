/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shown.c - a rank that points its peers to device memory which it has not shown is named. */
#include "../bodies.h"

#include "comm/gpu/arena.h"
#include "comm/gpu/gpu.h"
#include "comm/state/comm.h"
#include "rondo/cuda.h"

#include <criterion/criterion.h>
#include <string.h>

enum { COUNT = 1 << 18 };

static rondo_result call(struct gpu_rank *rank, void *memory)
{
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, rank->comm, rank->stream);

    return result ? result : rondo_stream_synchronize(rank->stream);
}

/* Rank 0 knows nothing any more of what rank 1 has shown to it. */
static void forget_shown(const rondo_comm *comm)
{
    const struct gpu_plans *plans = comm_gpu(comm)->plans;

    for (int slot = 0; slot < GPU_REGIONS; slot++)
        plans->table[GPU_REGIONS + slot].bytes = 0;
    gpu_note_change(plans->own);
}

static rondo_result call_with_what_is_not_shown(struct gpu_rank *rank)
{
    void *memory = NULL;
    rondo_result result = rondo_cuda_mem_alloc(COUNT * sizeof(int32_t), &memory);

    if (!result)
        result = call(rank, memory);
    if (result)
        return result;
    if (!rondo_comm_rank(rank->comm))
        forget_shown(rank->comm);
    result = call(rank, memory);
    rondo_cuda_mem_free(memory);
    if (result != RONDO_ERROR_PEER ||
        !strstr(rondo_last_error(rank->comm), "Rank 1 pointed rank 0"))
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "result %d: %s", result,
                         rondo_last_error(rank->comm));
    return RONDO_OK;
}

static rondo_result calls_with_what_is_not_shown(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, call_with_what_is_not_shown);
}

Test(gpu_shown, who_points_to_what_it_has_not_shown_is_named)
{
    static struct world_report report;
    struct gpu_scene scene = {.devices = 2};
    const struct world world = {.size = 2, .processes = true};

    cr_assert(world_run(&world, calls_with_what_is_not_shown, &scene, &report) == 0, "%s",
              report.summary);
}
