/* SPDX-License-Identifier: BSD-3-Clause */
/* test_segments.c - what peers map of each other's device memory: each piece once, as long as it
 * is there and used; what cannot be mapped is copied. Ranks are processes: threads have the same
 * addresses. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct world_report report;

static void expect(world_body body, int size, int devices)
{
    struct gpu_scene scene = {.devices = devices};
    struct world world = {.size = size, .processes = true};
    int failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_segments, calls_on_pieces_are_right)
{
    for (int size = 2; size <= 4; size++) {
        struct gpu_scene scene = {.devices = 1 + size % 2, .cases = 80, .pieces = true};
        struct world world = {.size = size, .processes = true};
        int failed = world_run(&world, gpu_matrix, &scene, &report);

        cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
    }
}

Test(gpu_segments, each_piece_is_mapped_once_and_given_back)
{
    for (int size = 2; size <= 4; size++)
        expect(gpu_shares_pieces, size, 1 + size % 2);
}

/* Ranks that can be read when they meet, and then close themselves, have to say so before. */
Test(gpu_segments, pieces_that_a_peer_may_not_take_are_asked_for)
{
    setenv("RONDO_CMA", "off", 1);
    for (int size = 2; size <= 4; size++)
        expect(gpu_asks_for_pieces, size, 1);
}

Test(gpu_segments, pieces_not_made_to_be_shared_are_copied)
{
    expect(gpu_copies_closed_pieces, 2, 1);
    expect(gpu_copies_closed_pieces, 3, 2);
}

Test(gpu_segments, pieces_that_a_peer_cannot_map_are_copied)
{
    setenv("CUDA_STANDIN_FAIL", "cuMemImportFromShareableHandle:1", 1);
    expect(gpu_copies_refused_pieces, 2, 1);
    setenv("CUDA_STANDIN_FAIL", "cuMemMap:2,cuMemSetAccess:2",
           1); /* the first are the rank's own */
    expect(gpu_copies_refused_pieces, 2, 1);
}

Test(gpu_segments, slots_of_freed_memory_are_used_again)
{
    for (int size = 2; size <= 4; size++)
        expect(gpu_recycles_slots, size, 1 + size % 2);
}

Test(gpu_segments, memory_that_is_not_used_makes_room)
{
    expect(gpu_replaces_unused, 2, 1);
    expect(gpu_replaces_unused, 3, 1);
}

Test(gpu_segments, memory_is_mapped_while_something_is_captured)
{
    expect(gpu_maps_beside_captures, 3, 1);
}
