/* SPDX-License-Identifier: BSD-3-Clause */
/* test_behind.c - CUDA streams that come late to calls which were queued long ago. */
#include "behind.h"

#include <criterion/criterion.h>

static struct world_report report;

static void expect(world_body body, int size, bool processes, bool host)
{
    struct gpu_scene scene = {.devices = 2, .host = host};
    struct world world = {.size = size, .processes = processes};
    int failed;

    gpu_gives_graphs_channels(); /* what is not held must not be queued behind what is */
    failed = world_run(&world, body, &scene, &report);
    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

/* Processes first: those of a process that has used CUDA cannot. */
Test(gpu_behind, the_time_in_the_queue_does_not_count_as_a_wait_for_peers)
{
    expect(gpu_calls_older_than_the_timeout, 2, true, false);
    expect(gpu_calls_older_than_the_timeout, 2, false, false);
}

Test(gpu_behind, closing_awaits_calls_that_streams_have_still_to_hand_over)
{
    expect(gpu_closes_before_a_call, 2, true, true);
}
