/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engines.c - calls that only move data, by copy engines (RONDO_COPY_ENGINES): right, without
 * a kernel, in pieces, in graphs, and with ranks that fail.
 */
#include "moves.h"

#include "../device.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

static void wanted(void)
{
    setenv("RONDO_COPY_ENGINES", "1", 1);
}

TestSuite(gpu_engines, .init = wanted);

static void expect(world_body body, int size, struct gpu_scene scene)
{
    struct world world = {.size = size, .processes = true};
    int failed;

    scene.devices = 2;
    failed = world_run(&world, body, &scene, &report);
    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_engines, calls_that_move_data_launch_no_kernel)
{
    expect(moves_run, 2, (struct gpu_scene){.cases = 1});
    expect(moves_run, 3, (struct gpu_scene){.cases = 1});
    expect(moves_run, 5, (struct gpu_scene){.cases = 1});
}

Test(gpu_engines, calls_longer_than_the_reserve_go_in_pieces)
{
    setenv("RONDO_CUDA_RESERVE", "256K", 1);
    expect(moves_run, 2, (struct gpu_scene){.cases = 1});
    expect(moves_run, 3, (struct gpu_scene){.cases = 1});
}

Test(gpu_engines, unasked_they_launch_kernels)
{
    setenv("RONDO_COPY_ENGINES", "0", 1);
    expect(moves_run, 2, (struct gpu_scene){.cases = 0});
}

Test(gpu_engines, threads_do_without)
{
    struct gpu_scene scene = {.devices = 2};
    struct world world = {.size = 2};

    cr_assert(world_run(&world, moves_run, &scene, &report) == 0, "%s", report.summary);
}

Test(gpu_engines, all_calls_are_right_on_all_kinds_of_memory)
{
    expect(gpu_matrix, 2, (struct gpu_scene){.cases = 120});
    expect(gpu_matrix, 3, (struct gpu_scene){.cases = 80});
}

Test(gpu_engines, graphs_are_replayed_and_streams_keep_their_order)
{
    expect(gpu_replays_graphs, 2, (struct gpu_scene){0});
    expect(gpu_orders_streams, 3, (struct gpu_scene){0});
}

Test(gpu_engines, calls_end_when_ranks_fail)
{
    expect(gpu_aborts_in_flight, 3, (struct gpu_scene){0});
    expect(gpu_finds_mismatches, 3, (struct gpu_scene){0});
}

Test(gpu_engines, a_rank_that_has_closed_is_named)
{
    expect(moves_miss_one, 3, (struct gpu_scene){.victim = 1});
}
