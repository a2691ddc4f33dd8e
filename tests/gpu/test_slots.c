/* SPDX-License-Identifier: BSD-3-Clause */
/* test_slots.c - calls on CUDA streams between hosts whose messages the device moves, from and to
 * pinned slots: the same as with GPUDirect, but for where the slots are. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world_report report;
static char said[1 << 16]; /* by the ranks' logs */

static int run(int size, world_body body, struct gpu_scene scene)
{
    struct world world = {.size = size, .processes = true};
    FILE *log = tmpfile();
    int before = dup(STDERR_FILENO), failed;

    setenv("RONDO_LOG", "info", 1);
    setenv("RONDO_TRANSPORT", "tcp", 1);
    dup2(fileno(log), STDERR_FILENO);
    failed = world_run(&world, body, &scene, &report);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(log);
    said[fread(said, 1, sizeof(said) - 1, log)] = 0;
    fclose(log);
    return failed;
}

static void expect_right(int size, world_body body, struct gpu_scene scene)
{
    int failed;

    setenv("RONDO_GPUDIRECT", "slots", 1);
    failed = run(size, body, scene);
    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
    cr_assert(strstr(said, "through slots of the host, moved by the device"), "%s", said);
}

Test(gpu_slots, without_rdma_buffers_are_staged)
{
    int failed = run(2, gpu_matrix, (struct gpu_scene){.devices = 2, .cases = 24});

    cr_assert(failed == 0, "%s", report.summary);
    cr_assert(strstr(said, "adapters do not use memory of CUDA device 0: RDMA is not used"), "%s",
              said);
    cr_assert(strstr(said, "GPU buffers are staged between nodes"), "%s", said);
}

Test(gpu_slots, a_rank_whose_device_has_no_stream_for_it_has_all_stage)
{
    int failed;

    if (!device_can_be_told_to_fail())
        cr_skip_test("a GPU's driver cannot be told to refuse");
    setenv("RONDO_GPUDIRECT", "slots", 1);
    setenv("CUDA_STANDIN_FAIL", "cuStreamCreateWithPriority:1", 1);
    failed = run(2, gpu_matrix, (struct gpu_scene){.devices = 2, .cases = 24});
    cr_assert(failed == 0, "%s", report.summary);
    cr_assert(strstr(said, "the device moves no messages between nodes: CUDA: "), "%s", said);
    cr_assert(strstr(said, "GPU buffers are staged between nodes"), "%s", said);
}

Test(gpu_slots, all_calls_are_right_on_all_kinds_of_memory)
{
    expect_right(2, gpu_matrix, (struct gpu_scene){.devices = 2, .cases = 160});
    expect_right(3, gpu_matrix, (struct gpu_scene){.devices = 2, .cases = 160});
    expect_right(4, gpu_matrix, (struct gpu_scene){.devices = 1, .cases = 80});
}

Test(gpu_slots, all_calls_are_right_in_two_short_slots)
{
    setenv("RONDO_SLOTS", "2", 1);
    setenv("RONDO_SLOT_BYTES", "4096", 1);
    expect_right(3, gpu_matrix, (struct gpu_scene){.devices = 1, .cases = 80});
}

Test(gpu_slots, streams_keep_their_order)
{
    expect_right(3, gpu_orders_streams, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, graphs_are_replayed)
{
    expect_right(2, gpu_replays_graphs, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, a_capture_elsewhere_does_not_hinder_the_device)
{
    expect_right(2, gpu_moves_beside_captures, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, messages_are_exchanged)
{
    expect_right(3, gpu_exchanges_messages, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, blocking_calls_go_by_way_of_the_host)
{
    expect_right(2, gpu_blocks_on_device_memory, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, an_abort_lets_streams_go)
{
    expect_right(3, gpu_aborts_in_flight, (struct gpu_scene){.devices = 2});
}

Test(gpu_slots, calls_that_differ_are_found)
{
    expect_right(2, gpu_finds_mismatches, (struct gpu_scene){.devices = 2});
}
