/* SPDX-License-Identifier: BSD-3-Clause */
/* test_branches.c - calls of one communicator come one after another, in whatever graphs and
 * streams they are. */
#include "bodies.h"

#include <criterion/criterion.h>

static struct world_report report;

static void expect(world_body body, int size, bool processes, bool host)
{
    struct gpu_scene scene = {.devices = 2, .host = host};
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks%s: %s", size, host ? ", by the host" : "", report.summary);
}

/* Two ranks have a device each, and short calls that are kernels. */
#define EACH_WAY(name, body)                         \
    Test(gpu_branches, name)                         \
    {                                                \
        expect(body, 2, true, false);                \
        expect(body, 3, true, false);                \
    }                                                \
    Test(gpu_branches, name##_with_ranks_as_threads) \
    {                                                \
        expect(body, 2, false, false);               \
        expect(body, 3, false, false);               \
    }                                                \
    Test(gpu_branches, name##_by_the_host)           \
    {                                                \
        expect(body, 2, true, true);                 \
    }

EACH_WAY(branches_of_a_graph_run_one_after_another, gpu_forks_graphs)
EACH_WAY(graphs_and_calls_in_other_streams_keep_their_order, gpu_mixes_graphs)

/* Each rank has a context of its own: a thread's stream waits for the legacy one of its context, on
 * which another rank's copies would wait for it. */
Test(gpu_branches, streams_of_one_handle_are_told_apart)
{
    expect(gpu_shares_handles, 2, true, false);
    expect(gpu_shares_handles, 3, true, false);
}
