/* SPDX-License-Identifier: BSD-3-Clause */
/* test_calls.c - calls on CUDA streams keep their order, replay in graphs, exchange messages, and
 * end when they cannot succeed. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct world_report report;
static char sentence[WORLD_SENTENCE];

static void expect(world_body body, int size, bool processes, bool host)
{
    struct gpu_scene scene = {.devices = size == 1 ? 1 : 2, .host = host};
    struct world world = {.size = size, .processes = processes};
    int failed;

    if (!processes && (body == gpu_replays_graphs || body == gpu_aborts_graphs)) {
        gpu_gives_graphs_channels();
        if (!gpu_threads_launch_graphs(size))
            return;
    }
    failed = world_run(&world, body, &scene, &report);
    cr_assert(failed == 0, "%d ranks%s: %s", size, host ? ", by the host" : "", report.summary);
}

/* Processes first: those of a process that has used CUDA cannot. */
#define BOTH_WAYS(name, body)                                     \
    Test(gpu_calls, name##_with_ranks_as_processes)               \
    {                                                             \
        for (int size = 1; size <= 5; size += size > 2 ? 2 : 1) { \
            expect(body, size, true, false);                      \
            expect(body, size, true, true);                       \
        }                                                         \
    }                                                             \
    Test(gpu_calls, name##_with_ranks_as_threads)                 \
    {                                                             \
        for (int size = 1; size <= 4; size++)                     \
            expect(body, size, false, false);                     \
        expect(body, 3, false, true);                             \
    }

BOTH_WAYS(streams_keep_their_order, gpu_orders_streams)
BOTH_WAYS(graphs_can_be_replayed, gpu_replays_graphs)
BOTH_WAYS(messages_of_a_group_wait_for_no_order, gpu_exchanges_messages)
BOTH_WAYS(blocking_calls_take_device_memory, gpu_blocks_on_device_memory)

BOTH_WAYS(counts_beyond_an_allocation_are_tolerated, gpu_tolerates_long_counts)

Test(gpu_calls, an_abort_lets_streams_go)
{
    expect(gpu_aborts_in_flight, 3, true, false);
    expect(gpu_aborts_in_flight, 3, true, true);
}

Test(gpu_calls, an_abort_lets_streams_of_threads_go)
{
    expect(gpu_aborts_in_flight, 3, false, false);
}

Test(gpu_calls, a_stream_tells_once_of_a_call_that_was_cut_short)
{
    expect(gpu_streams_tell_of_cut_calls, 3, true, false);
    expect(gpu_streams_tell_of_cut_calls, 2, true, false);
    expect(gpu_streams_tell_of_cut_calls, 3, true, true);
    expect(gpu_streams_tell_of_cut_calls, 3, false, false);
}

Test(gpu_calls, a_stream_tells_nothing_of_calls_that_ended_before_a_failure)
{
    expect(gpu_streams_keep_ended_calls, 3, true, false);
    expect(gpu_streams_keep_ended_calls, 2, true, false);
    expect(gpu_streams_keep_ended_calls, 3, true, true);
}

Test(gpu_calls, a_call_on_memory_of_the_host_ends_without_its_peer)
{
    expect(gpu_ends_calls_on_host_memory, 3, true, false);
    expect(gpu_ends_calls_on_host_memory, 2, true, false);
}

Test(gpu_calls, different_calls_are_found)
{
    expect(gpu_finds_mismatches, 3, true, false);
    expect(gpu_finds_mismatches, 3, true, true);
}

Test(gpu_calls, different_calls_of_threads_are_found)
{
    expect(gpu_finds_mismatches, 3, false, false);
}

/* A held victim makes one of these marks, or both; a body waits for one, and removes it. */
static void remove_marks(const char *hold)
{
    static const char *const marks[] = {"", ".held", ".parked"};
    char path[64];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", hold, marks[i]);
        unlink(path);
    }
}

static void expect_nothing_changed(world_body body, const char *hold_at)
{
    char path[] = "/tmp/rondo-hold-XXXXXX";
    struct gpu_scene scene = {.devices = 2, .victim = 1, .hold = path, .hold_at = hold_at};
    struct world world = {.size = 2, .processes = true};
    int failed;

    if (!device_standin_stop())
        cr_skip_test("kernels of a real device cannot be held");
    close(mkstemp(path));
    unlink(path);
    failed = world_run(&world, body, &scene, &report);
    remove_marks(path);
    cr_assert(failed == 0, "%s", report.summary);
}

/* "Changed" is what gpu/leave.c is there for. A kernel that adds up has found its operands at its
 * second barrier; one that is the whole call, of which this is the second, at its sixth. */
Test(gpu_calls, no_peer_changes_memory_of_a_call_that_was_left)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect_nothing_changed(gpu_leaves_with_a_held_peer, "2");
    expect_nothing_changed(gpu_leaves_with_a_peer_at_work, "2");
}

Test(gpu_calls, no_peer_changes_memory_of_a_kernel_that_was_left)
{
    const char *devices = getenv("CUDA_STANDIN_DEVICES");

    if (devices && strcmp(devices, "1") == 0)
        cr_skip_test("processes that share a device have no such kernels");
    expect_nothing_changed(gpu_leaves_with_a_held_peer, "6");
    expect_nothing_changed(gpu_leaves_with_a_peer_at_work, "6");
}

Test(gpu_calls, nor_does_the_device_of_a_stopped_one)
{
    expect_nothing_changed(gpu_leaves_with_a_stopped_peer, "1");
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    expect_nothing_changed(gpu_leaves_with_a_stopped_peer, "1");
}

Test(gpu_calls, an_abort_lets_graphs_go)
{
    expect(gpu_aborts_graphs, 3, true, false);
    expect(gpu_aborts_graphs, 2, true, false);
    expect(gpu_aborts_graphs, 3, true, true);
}

Test(gpu_calls, an_abort_lets_graphs_of_threads_go)
{
    expect(gpu_aborts_graphs, 2, false, false);
}

/* Each on a device of its own: short calls are kernels that spin. */
Test(gpu_calls, failures_end_kernels_too)
{
    expect(gpu_aborts_in_flight, 2, true, false);
    expect(gpu_finds_mismatches, 2, true, false);
}

Test(gpu_calls, a_rank_that_closes_too_early_is_named)
{
    expect(gpu_misses_a_closed_rank, 3, true, false);
    expect(gpu_misses_a_closed_rank, 2, true, false);
}

/* They wait for each other at a gate, to which one that has closed or aborted comes no more. */
static void expect_not_late(world_body body, bool host)
{
    int file = memfd_create("log", MFD_CLOEXEC);
    char log[1 << 16] = "";

    setenv("RONDO_LOG", "info", 1);
    dup2(file, STDERR_FILENO);
    expect(body, 3, false, host);
    cr_assert(pread(file, log, sizeof(log) - 1, 0) > 0 && !strstr(log, "has been late"), "%s", log);
}

Test(gpu_calls, a_thread_that_closes_too_early_is_not_waited_for)
{
    expect_not_late(gpu_misses_a_closed_rank, false);
}

Test(gpu_calls, a_thread_that_aborts_is_not_waited_for)
{
    expect_not_late(gpu_aborts_in_flight, false);
}

Test(gpu_calls, a_thread_that_aborts_is_not_waited_for_by_way_of_the_host)
{
    expect_not_late(gpu_aborts_in_flight, true);
}

static void expect_survivors(world_body body, int size, int devices)
{
    struct gpu_scene scene = {.devices = devices, .victim = 1};
    struct world world = {.size = size, .processes = true};

    scene.passed = world_share((size_t)size * sizeof(int));
    world_run(&world, body, &scene, &report);
    cr_assert(report.signals[1] == 9);
    for (int rank = 0; rank < size; rank++)
        cr_assert(rank == 1 || scene.passed[rank], "%s", report.summary);
}

Test(gpu_calls, a_dead_rank_is_named)
{
    expect_survivors(gpu_survives_a_death, 4, 1);
}

Test(gpu_calls, a_dead_rank_that_a_graph_waits_for_is_named)
{
    expect_survivors(gpu_graphs_survive_a_death, 4, 1);
    expect_survivors(gpu_graphs_survive_a_death, 2, 2);
}

Test(gpu_calls, a_device_without_an_image_of_the_kernels_has_calls_go_by_the_host)
{
    struct gpu_scene scene = {.devices = 2, .cases = 24};
    struct world world = {.size = 3, .processes = true};
    int failed;

    setenv("CUDA_STANDIN_FAIL", "cuModuleLoadData:1=209", 1); /* no binary for this GPU */
    failed = world_run(&world, gpu_matrix, &scene, &report);
    cr_assert(failed == 0, "%s", report.summary);
}

Test(gpu_calls, one_thread_makes_the_calls_of_all_ranks)
{
    for (int size = 1; size <= 5; size++)
        cr_assert(gpu_runs_in_one_thread(size, false, sentence) == RONDO_OK, "%s", sentence);
}

Test(gpu_calls, one_thread_makes_the_calls_of_all_ranks_on_one_stream)
{
    for (int size = 1; size <= 4; size++)
        cr_assert(gpu_runs_in_one_thread(size, true, sentence) == RONDO_OK, "%s", sentence);
}

Test(gpu_calls, one_thread_does_so_by_the_host)
{
    setenv("RONDO_CUDA", "host", 1);
    cr_assert(gpu_runs_in_one_thread(3, false, sentence) == RONDO_OK, "%s", sentence);
    cr_assert(gpu_runs_in_one_thread(3, true, sentence) == RONDO_OK, "%s", sentence);
}
