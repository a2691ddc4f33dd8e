/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ends.c - communicators that are closed before CUDA streams have come to their calls: those
 * that are broken wait for no stream, and the stream comes to its end all the same. */
#include "ends.h"
#include "../device.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

static void expect(world_body body, int size, bool processes, bool host)
{
    const char *wrong = gpu_ranks_fail(body, size, processes, host);

    cr_assert(!wrong, "%s", wrong);
}

Test(gpu_ends, an_aborted_communicator_with_graphs_waits_for_no_stream_by_way_of_the_host)
{
    expect(gpu_closes_aborted_before_graphs, 1, true, true);
    expect(gpu_closes_aborted_before_graphs, 2, true, true);
}

/* They have the device's kernels all the same, and it was the last one that has. */
Test(gpu_ends, nor_does_one_whose_devices_do_not_reach_each_other)
{
    setenv("CUDA_STANDIN_PEER", "0", 1);
    expect(gpu_closes_aborted_before_calls, 2, true, false);
}

Test(gpu_ends, nor_does_one_whose_calls_are_on_the_device)
{
    expect(gpu_closes_aborted_before_graphs, 2, true, false);
}

Test(gpu_ends, nor_does_one_whose_calls_are_operations_of_the_stream)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect(gpu_closes_aborted_before_graphs, 2, true, false);
}

Test(gpu_ends, streams_end_that_come_later_to_calls_of_an_aborted_one)
{
    expect(gpu_closes_aborted_before_calls, 2, true, true);
    expect(gpu_closes_aborted_before_calls, 2, true, false);
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect(gpu_closes_aborted_before_calls, 2, true, false);
}

Test(gpu_ends, and_touch_no_memory_that_a_peer_has_used_again)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect(gpu_uses_memory_of_an_aborted_one_again, 2, true, false);
}

Test(gpu_ends, one_with_a_call_of_which_the_driver_took_a_part_can_be_closed)
{
    struct gpu_scene scene = {.devices = 1, .host = true, .failing = "cuStreamWriteValue32:3"};
    struct world world = {.size = 1, .processes = true};

    if (!device_can_be_told_to_fail())
        cr_skip_test("a real driver refuses nothing");
    cr_assert(world_run(&world, gpu_closes_after_a_refusal, &scene, &report) == 0, "%s",
              report.summary);
}

Test(gpu_ends, and_a_stream_that_comes_to_such_a_part_ends)
{
    struct gpu_scene scene = {.devices = 2, .failing = "cuStreamBatchMemOp:2"};
    struct world world = {.size = 2, .processes = true};

    if (!device_can_be_told_to_fail())
        cr_skip_test("a real driver refuses nothing");
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    cr_assert(world_run(&world, gpu_closes_before_a_part, &scene, &report) == 0, "%s",
              report.summary);
}

static void expect_survivor(bool host)
{
    struct gpu_scene scene = {.devices = 2, .victim = 1, .host = host};
    struct world world = {.size = 2, .processes = true};

    gpu_gives_graphs_channels();
    scene.passed = world_share(2 * sizeof(int));
    world_run(&world, gpu_closes_before_graphs_without_a_peer, &scene, &report);
    cr_assert(report.signals[1] == 9);
    cr_assert(scene.passed[0], "%s", report.summary);
}

Test(gpu_ends, nor_does_one_that_has_lost_a_peer)
{
    expect_survivor(true);
    expect_survivor(false);
}

Test(gpu_ends, a_sound_one_waits_for_launches_of_its_graphs)
{
    expect(gpu_closes_before_a_launch, 1, true, true);
    expect(gpu_closes_before_a_launch, 2, true, true);
    expect(gpu_closes_before_a_launch, 2, true, false);
}
