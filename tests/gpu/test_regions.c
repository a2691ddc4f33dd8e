/* SPDX-License-Identifier: BSD-3-Clause */
/* test_regions.c - what peers map of each other's device memory: each piece once, as long as it
 * is there and used; what cannot be mapped is copied. Ranks are processes: threads have the same
 * addresses. */
#include "bodies.h"
#include "device.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { ROUNDS = 100, ELEMENTS = 20000 };

static struct world_report report;

static void expect(world_body body, int size, int devices)
{
    struct gpu_scene scene = {.devices = devices};
    struct world world = {.size = size, .processes = true};
    int failed = world_run(&world, body, &scene, &report);

    cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
}

Test(gpu_regions, calls_on_pieces_are_right)
{
    for (int size = 2; size <= 4; size++) {
        struct gpu_scene scene = {.devices = 1 + size % 2, .cases = 80, .pieces = true};
        struct world world = {.size = size, .processes = true};
        int failed = world_run(&world, gpu_matrix, &scene, &report);

        cr_assert(failed == 0, "%d ranks: %s", size, report.summary);
    }
}

Test(gpu_regions, each_piece_is_mapped_once_and_given_back)
{
    for (int size = 2; size <= 4; size++)
        expect(gpu_shares_pieces, size, 1 + size % 2);
}

/* Ranks that can be read when they meet, and then close themselves, have to say so before. */
Test(gpu_regions, pieces_that_a_peer_may_not_take_are_asked_for)
{
    setenv("RONDO_CMA", "off", 1);
    for (int size = 2; size <= 4; size++)
        expect(gpu_asks_for_pieces, size, 1);
}

Test(gpu_regions, pieces_not_made_to_be_shared_are_copied)
{
    expect(gpu_copies_closed_pieces, 2, 1);
    expect(gpu_copies_closed_pieces, 3, 2);
}

Test(gpu_regions, pieces_that_a_peer_cannot_map_are_copied)
{
    setenv("CUDA_STANDIN_FAIL", "cuMemImportFromShareableHandle:1", 1);
    expect(gpu_copies_refused_pieces, 2, 1);
    setenv("CUDA_STANDIN_FAIL", "cuMemMap:2,cuMemSetAccess:2",
           1); /* the first are the rank's own */
    expect(gpu_copies_refused_pieces, 2, 1);
}

Test(gpu_regions, slots_of_freed_memory_are_used_again)
{
    for (int size = 2; size <= 4; size++)
        expect(gpu_recycles_slots, size, 1 + size % 2);
}

static rondo_result sum_once(struct gpu_rank *rank, int32_t *memory, int32_t *host, int round)
{
    size_t bytes = ELEMENTS * sizeof(*host);

    for (int k = 0; k < ELEMENTS; k++)
        host[k] = round + k;
    if (!memory || !device_copy(memory, host, bytes) ||
        rondo_all_reduce(memory, memory, ELEMENTS, RONDO_INT32, RONDO_SUM, rank->comm,
                         rank->stream) ||
        rondo_stream_synchronize(rank->stream) || !device_copy(host, memory, bytes))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "round %d: %s", round,
                         rondo_last_error(rank->comm));
    for (int k = 0; k < ELEMENTS; k++)
        if (host[k] != (round + k) * rondo_comm_size(rank->comm))
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "round %d: element %d is %d",
                             round, k, host[k]);
    return RONDO_OK;
}

/* Rank 0 has more allocations than there are slots, one after the other, and rank 1 a single one,
 * for calls that are too long to be sent whole. */
static rondo_result sums_in_new_memory(struct gpu_rank *rank)
{
    bool renews = rondo_comm_rank(rank->comm) == 0;
    int32_t *host = calloc(ELEMENTS, sizeof(*host)), *memory = NULL;
    rondo_result result = host ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int i = 0; i < ROUNDS && !result; i++) {
        if (!memory)
            memory = device_alloc(MEMORY_DEVICE, ELEMENTS * sizeof(*memory));
        result = sum_once(rank, memory, host, i);
        if (renews) {
            device_free(MEMORY_DEVICE, memory);
            memory = NULL;
        }
    }
    if (!result)
        result = rondo_comm_finalize(rank->comm);
    device_free(MEMORY_DEVICE, memory);
    free(host);
    return result;
}

static rondo_result gpu_sums_in_new_memory(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, sums_in_new_memory);
}

/* Where each rank has a device calls are kernels, which keep what they have learnt of regions. */
Test(gpu_regions, kernels_find_what_took_the_place_of_freed_memory)
{
    expect(gpu_sums_in_new_memory, 2, 2);
}

Test(gpu_regions, memory_that_is_not_used_makes_room)
{
    expect(gpu_replaces_unused, 2, 1);
    expect(gpu_replaces_unused, 3, 1);
}

Test(gpu_regions, memory_is_mapped_while_something_is_captured)
{
    expect(gpu_maps_beside_captures, 3, 1);
}
