/* SPDX-License-Identifier: BSD-3-Clause */
/* test_matrix.c - calls on CUDA streams are right, whatever the memory, as plans on the device and
 * by way of the host, with ranks as threads and as processes, on one device and on two. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

static void expect_right(int size, bool processes, struct gpu_scene scene)
{
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, gpu_matrix, &scene, &report);

    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_matrix, plans_are_right_on_one_device_with_ranks_as_processes)
{
    for (int size = 1; size <= 5; size++)
        expect_right(size, true, (struct gpu_scene){.devices = 1, .cases = 120});
    expect_right(8, true, (struct gpu_scene){.devices = 1, .cases = 60});
}

Test(gpu_matrix, plans_are_right_on_two_devices_with_ranks_as_processes)
{
    expect_right(2, true, (struct gpu_scene){.devices = 2, .cases = 120});
    expect_right(5, true, (struct gpu_scene){.devices = 2, .cases = 80});
}

Test(gpu_matrix, plans_are_right_with_ranks_as_threads)
{
    for (int size = 1; size <= 5; size++)
        expect_right(size, false, (struct gpu_scene){.devices = 2, .cases = 120});
    expect_right(8, false, (struct gpu_scene){.devices = 1, .cases = 60});
}

Test(gpu_matrix, the_way_by_the_host_is_right_with_ranks_as_threads)
{
    expect_right(1, false, (struct gpu_scene){.devices = 1, .host = true, .cases = 60});
    expect_right(3, false, (struct gpu_scene){.devices = 2, .host = true, .cases = 100});
}

Test(gpu_matrix, the_way_by_the_host_is_right_with_ranks_as_processes)
{
    expect_right(2, true, (struct gpu_scene){.devices = 2, .host = true, .cases = 60});
    expect_right(4, true, (struct gpu_scene){.devices = 1, .host = true, .cases = 100});
}

Test(gpu_matrix, the_way_over_a_network_is_right)
{
    setenv("RONDO_TRANSPORT", "tcp", 1);
    expect_right(3, true, (struct gpu_scene){.devices = 2, .cases = 60});
}

/* All but the shortest are longer than what stands in for buffers, and have many pieces. */
Test(gpu_matrix, long_calls_are_cut_into_pieces_that_fit_the_reserve)
{
    setenv("RONDO_CUDA_RESERVE", "64K", 1);
    expect_right(2, true, (struct gpu_scene){.devices = 1, .cases = 160});
    expect_right(3, true, (struct gpu_scene){.devices = 2, .cases = 160});
    expect_right(5, true, (struct gpu_scene){.devices = 1, .cases = 80});
}

Test(gpu_matrix, long_calls_by_the_host_are_cut_into_pieces)
{
    setenv("RONDO_CUDA_PIECE", "4k", 1);
    expect_right(3, false, (struct gpu_scene){.devices = 2, .host = true, .cases = 200});
}

Test(gpu_matrix, long_calls_over_a_network_are_cut_into_pieces)
{
    setenv("RONDO_CUDA_PIECE", "4k", 1);
    setenv("RONDO_TRANSPORT", "tcp", 1);
    expect_right(2, true, (struct gpu_scene){.devices = 1, .cases = 60});
}
