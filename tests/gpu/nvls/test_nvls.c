/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nvls.c - calls through multicast objects: right, in order, in graphs, with peers that end or
 * differ, and with drivers that refuse some part of it.
 */
#include "bodies.h"

#include "../device.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

/* A device for each rank, of which the driver makes teams. */
static void offer(const char *setting)
{
    setenv("CUDA_STANDIN_MULTICAST", "1", 1);
    setenv("CUDA_STANDIN_DEVICES", "8", 1);
    setenv("RONDO_NVLS", setting, 1);
    if (!device_standin_stop() && device_count_apart() < 8)
        cr_skip_test("eight ranks want a GPU each");
}

static void expect(world_body body, int size, bool processes, int cases)
{
    struct gpu_scene scene = {.devices = size, .victim = 1, .cases = cases};
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_nvls, calls_of_processes_are_right)
{
    offer("on");
    expect(nvls_calls, 2, true, 1);
    expect(nvls_calls, 3, true, 1);
}

Test(gpu_nvls, calls_of_eight_processes_are_right)
{
    offer("on");
    expect(nvls_calls, 8, true, 1);
}

Test(gpu_nvls, calls_of_threads_are_right)
{
    offer("on");
    expect(nvls_calls, 4, false, 1);
}

Test(gpu_nvls, long_calls_of_three_devices_go_through_it_unasked)
{
    offer("auto");
    expect(nvls_calls, 3, true, 2);
    expect(nvls_calls, 2, true, 0);
}

Test(gpu_nvls, it_can_be_turned_off)
{
    offer("off");
    expect(nvls_calls, 3, true, 0);
}

Test(gpu_nvls, sums_in_one_order_do_without)
{
    offer("on");
    setenv("RONDO_DETERMINISTIC", "1", 1);
    expect(nvls_calls, 3, true, 0);
    expect(gpu_keeps_bits, 3, true, 0);
}

Test(gpu_nvls, ranks_that_share_a_device_do_without)
{
    offer("on");
    setenv("CUDA_STANDIN_DEVICES", "2", 1);
    expect(nvls_calls, 3, false, 0);
}

Test(gpu_nvls, drivers_without_it_do_without)
{
    offer("on");
    setenv("CUDA_STANDIN_MULTICAST", "0", 1);
    expect(nvls_calls, 3, true, 0);
}

/* On every rank, or on one, as each process has a driver of its own. */
Test(gpu_nvls, what_the_driver_refuses_is_done_without)
{
    static const char *const failing[] = {"cuMulticastCreate:1",
                                          "cuMemExportToShareableHandle:1",
                                          "cuMemImportFromShareableHandle:1",
                                          "cuMulticastAddDevice:1",
                                          "cuMemCreate:1",
                                          "cuMulticastBindMem:1"};

    offer("on");
    for (int i = 0; i < 6; i++) {
        setenv("CUDA_STANDIN_FAIL", failing[i], 1);
        expect(nvls_calls, 2, true, 0);
    }
}

Test(gpu_nvls, a_thread_whose_driver_refuses_has_all_do_without)
{
    offer("on");
    setenv("CUDA_STANDIN_FAIL", "cuMulticastBindMem:2", 1);
    expect(nvls_calls, 3, false, 0);
}

Test(gpu_nvls, graphs_can_be_replayed)
{
    offer("on");
    expect(nvls_replays, 3, true, 0);
}

Test(gpu_nvls, a_rank_that_ends_is_named)
{
    int *passed = world_share(3 * sizeof(*passed));
    struct gpu_scene scene = {.devices = 3, .victim = 1, .passed = passed};
    struct world world = {.size = 3, .processes = true};

    offer("on");
    world_run(&world, nvls_loses_a_rank, &scene, &report);
    cr_assert(passed[0] && passed[2], "%s", report.summary);
}

Test(gpu_nvls, different_calls_are_found)
{
    offer("on");
    expect(nvls_differs, 3, true, 0);
}

Test(gpu_nvls, different_calls_of_threads_are_found)
{
    offer("on");
    expect(nvls_differs, 3, false, 0);
}

Test(gpu_nvls, a_rank_that_has_closed_is_named)
{
    struct gpu_scene scene = {.devices = 3, .victim = 1};
    struct world world = {.size = 3, .processes = true};

    offer("on");
    cr_assert(world_run(&world, nvls_is_closed_by_one, &scene, &report) == 0, "%s", report.summary);
    world.processes = false;
    cr_assert(world_run(&world, nvls_is_closed_by_one, &scene, &report) == 0, "%s", report.summary);
}

Test(gpu_nvls, teams_of_closed_communicators_are_given_back)
{
    offer("on");
    expect(nvls_comes_and_goes, 3, true, 0);
}

Test(gpu_nvls, streams_keep_their_order)
{
    offer("on");
    expect(gpu_orders_streams, 3, true, 0);
    expect(gpu_aborts_in_flight, 3, true, 0);
}
