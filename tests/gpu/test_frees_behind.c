/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frees_behind.c - memory that is freed behind a call whose peer is late holds nobody up. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct world_report report;

static void expect(int size, int devices, bool processes)
{
    struct gpu_scene scene = {.devices = devices};
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, gpu_frees_behind_calls, &scene, &report);

    cr_assert(failed == 0, "%d ranks on %d devices: %s", size, devices, report.summary);
}

static void expect_long(int size, struct gpu_scene scene)
{
    struct world world = {.size = size, .processes = true};
    int failed = world_run(&world, gpu_frees_behind_long_calls, &scene, &report);

    cr_assert(failed == 0, "%d ranks on %d devices: %s", size, scene.devices, report.summary);
}

Test(gpu_frees_behind, calls_of_processes_on_one_device)
{
    setenv("CUDA_STANDIN_FREE_LOCKS", "0", 1);
    expect(2, 1, true);
    expect(3, 1, true);
}

Test(gpu_frees_behind, calls_of_processes_on_two_devices)
{
    setenv("CUDA_STANDIN_FREE_LOCKS", "0", 1);
    expect(2, 2, true);
}

/* Mapping waits for the free, and the free for the call, as on a GPU. Each call takes a second,
 * after which it is sent through the reserve. */
Test(gpu_frees_behind, calls_whose_memory_nobody_can_map_meanwhile)
{
    expect(2, 1, true);
}

Test(gpu_frees_behind, calls_of_three_ranks_whose_memory_nobody_can_map_meanwhile)
{
    expect(3, 1, true);
}

Test(gpu_frees_behind, calls_on_two_devices_whose_memory_nobody_can_map_meanwhile)
{
    expect(2, 2, true);
}

/* The reserve is as long as input and output together, and no longer. */
Test(gpu_frees_behind, calls_that_fill_the_reserve)
{
    setenv("RONDO_CUDA_RESERVE", "8M", 1);
    expect(2, 1, true);
}

/* Calls and messages are cut into pieces that have room. */
Test(gpu_frees_behind, calls_that_are_longer_than_the_reserve)
{
    setenv("RONDO_CUDA_RESERVE", "1M", 1);
    expect(2, 1, true);
}

Test(gpu_frees_behind, long_calls_of_every_collective)
{
    setenv("RONDO_CUDA_RESERVE", "1M", 1);
    expect_long(2, (struct gpu_scene){.devices = 2, .cases = 300001, .collectives = 8});
}

Test(gpu_frees_behind, long_calls_of_three_ranks)
{
    setenv("RONDO_CUDA_RESERVE", "1M", 1);
    expect_long(3, (struct gpu_scene){.devices = 1, .cases = 300001, .collectives = 8});
}

Test(gpu_frees_behind, calls_of_64_mib)
{
    setenv("RONDO_CUDA_RESERVE", "32M", 1);
    expect_long(2, (struct gpu_scene){.devices = 2, .cases = 16 << 20, .collectives = 1});
}

/* The reserve is too short for messages that are on their way together. */
Test(gpu_frees_behind, many_messages_that_wait_for_a_free_end_with_the_timeout)
{
    struct gpu_scene scene = {.devices = 1};
    struct world world = {.size = 3, .processes = true};
    char timeout[32];
    int failed;

    if (!device_standin_stop())
        cr_skip_test("drivers may let memory be mapped beside a free");
    setenv("RONDO_CUDA_RESERVE", "1M", 1);
    snprintf(timeout, sizeof(timeout), "%.1f", world_patience(3));
    setenv("RONDO_TIMEOUT", timeout, 1);
    failed = world_run(&world, gpu_frees_behind_many_messages, &scene, &report);
    cr_assert(failed == 0, "%s", report.summary);
}

Test(gpu_frees_behind, calls_of_threads)
{
    expect(2, 1, false);
    expect(2, 2, false);
}
