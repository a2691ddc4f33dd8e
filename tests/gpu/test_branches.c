/* SPDX-License-Identifier: BSD-3-Clause */
/* test_branches.c - calls of one communicator come one after another, in whatever graphs and
 * streams they are. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct world_report report;

static void expect(world_body body, int size, bool processes, bool host)
{
    struct gpu_scene scene = {.devices = processes ? 2 : size, .host = host};
    struct world world = {.size = size, .processes = processes};
    int failed;

    failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks%s: %s", size, host ? ", by the host" : "", report.summary);
}

/*
 * Two ranks have a device each, and short calls that are kernels. Threads have a context each, too:
 * graphs in one context wait for each other's if their branches share hardware channels, and which
 * they get the driver does not say, so no number of channels would be enough on a GPU.
 */
static void expect_with_threads(world_body body)
{
    const char *devices = getenv("CUDA_STANDIN_DEVICES");

    if (devices && strcmp(devices, "1") != 0)
        setenv("CUDA_STANDIN_DEVICES", "3", 1);
    if (device_count() < 2)
        cr_skip_test("ranks would share a context");
    for (int size = 2; size <= 3 && size <= device_count(); size++)
        expect(body, size, false, false);
}

#define EACH_WAY(name, body)                         \
    Test(gpu_branches, name)                         \
    {                                                \
        expect(body, 2, true, false);                \
        expect(body, 3, true, false);                \
    }                                                \
    Test(gpu_branches, name##_with_ranks_as_threads) \
    {                                                \
        expect_with_threads(body);                   \
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
