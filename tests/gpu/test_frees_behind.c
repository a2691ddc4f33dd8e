/* SPDX-License-Identifier: BSD-3-Clause */
/* test_frees_behind.c - memory that is freed behind a call whose peer is late holds nobody up. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

static void expect(int size, int devices, bool processes)
{
    struct gpu_scene scene = {.devices = devices};
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, gpu_frees_behind_calls, &scene, &report);

    cr_assert(failed == 0, "%d ranks on %d devices: %s", size, devices, report.summary);
}

Test(gpu_frees_behind, calls_of_processes_on_one_device)
{
    expect(2, 1, true);
    expect(3, 1, true);
}

Test(gpu_frees_behind, calls_of_processes_on_two_devices)
{
    expect(2, 2, true);
}

/* As on a GPU: mapping waits for the free, and the free for the call. */
Test(gpu_frees_behind, calls_whose_memory_nobody_can_map_meanwhile)
{
    setenv("CUDA_STANDIN_FREE_LOCKS", "1", 1);
    expect(2, 1, true);
    expect(3, 1, true);
    expect(2, 2, true);
}

/* As long as input and output together, and no longer. */
Test(gpu_frees_behind, calls_that_fill_the_reserve)
{
    setenv("CUDA_STANDIN_FREE_LOCKS", "1", 1);
    setenv("RONDO_CUDA_RESERVE", "8M", 1);
    expect(2, 1, true);
}

/* There is no room in the reserve, and nobody holds what mapping needs. */
Test(gpu_frees_behind, calls_that_do_not_fit_the_reserve)
{
    setenv("RONDO_CUDA_RESERVE", "1M", 1);
    expect(2, 1, true);
}

Test(gpu_frees_behind, calls_of_threads)
{
    expect(2, 1, false);
    expect(2, 2, false);
}
