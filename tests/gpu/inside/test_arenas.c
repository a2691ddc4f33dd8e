/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_arenas.c - the pages of a closed rank's arena stay until its peers have closed, too.
 *
 * Devices of peers have these pages pinned. Were they given back, the same addresses would get
 * other pages, of which the devices know nothing: a stream that waits there could not be let go. On
 * the stand-in, whose devices read by address, everything would seem right.
 *
 * The inbox of its device, to which kernels of peers write without a look, stays as well.
 */
#include "../bodies.h"

#include "comm/gpu/arena.h"
#include "comm/gpu/gpu.h"
#include "comm/state/comm.h"
#include "rondo/cuda.h"
#include "transport/memory/heap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FIRST = 3, ROUNDS = 100, PAGE = 4096, COUNT = 100 };

static struct world_report report;

static _Atomic uint64_t *word_of(struct gpu_arena *arena)
{
    return &gpu_mailbox(arena, 0, GPU_CHANNEL_PAIR)->input;
}

static struct gpu_arena *arena_of(const rondo_comm *comm, int rank)
{
    return comm_gpu(comm)->plans->views[rank].arena;
}

static rondo_result open_inner(const struct gpu_rank *rank, rondo_comm **ret_comm)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    return rondo_comm_split(rank->comm, 0, rondo_comm_rank(rank->comm), &config, ret_comm);
}

/* Rank 0 marks a page of rank 1's arena, which rank 1 closes. */
static rondo_result close_one(struct gpu_rank *rank)
{
    bool first = !rondo_comm_rank(rank->comm);
    rondo_comm *inner = NULL;
    rondo_result result = open_inner(rank, &inner);
    _Atomic uint64_t *word;

    if (result)
        return result;
    word = word_of(arena_of(inner, 1));
    if (first)
        *word = 77;
    result = rondo_barrier(rank->outer, NULL);
    if (!first)
        rondo_comm_close(inner);
    if (!result)
        result = rondo_barrier(rank->outer, NULL);
    if (!result && first && *word != 77)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the page is another one");
    if (first)
        rondo_comm_close(inner);
    return result ? result : rondo_barrier(rank->outer, NULL);
}

/* In the heap of this process, when nobody has retired anything any more. */
static long count_pages(void)
{
    struct heap_handle heap;
    struct stat status = {0};

    if (heap_enter(&heap))
        return -1;
    fstat(heap.fd, &status);
    heap_leave();
    return (long)status.st_blocks * 512 / PAGE;
}

/* Each round would leave a page behind, and more. */
static rondo_result close_again(struct gpu_rank *rank)
{
    long before = 0, after;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < FIRST + ROUNDS && !result; i++) {
        if (i == FIRST)
            before = count_pages();
        result = close_one(rank);
    }
    after = count_pages();
    if (!result && after - before >= ROUNDS)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the heap grows by %ld pages",
                           after - before);
    return result;
}

static rondo_result closes(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_again);
}

Test(gpu_arenas, pages_stay_until_peers_have_closed)
{
    struct gpu_scene scene = {.devices = 2};
    struct world world = {.size = 2, .processes = true};

    cr_assert(world_run(&world, closes, &scene, &report) == 0, "%s", report.summary);
    world.processes = false;
    cr_assert(world_run(&world, closes, &scene, &report) == 0, "%s", report.summary);
}

/* True if nothing has come into the inbox of this rank's device. */
static bool is_empty(const rondo_comm *comm)
{
    const struct gpu *gpu = comm_gpu(comm);
    const struct gpu_region_handle *inbox = &gpu->plans->own->inbox;
    char *bytes = malloc(inbox->bytes);
    bool empty =
        inbox->bytes && bytes &&
        !gpu->device.driver->cuMemcpyDtoHAsync(bytes, inbox->base, inbox->bytes, gpu->stream) &&
        !gpu->device.driver->cuStreamSynchronize(gpu->stream);

    for (size_t i = 0; i < inbox->bytes && empty; i++)
        empty = !bytes[i];
    free(bytes);
    return empty;
}

/* Rank 0 closes a communicator, on which rank 1 sends to it all the same, and opens another one. */
static rondo_result call_one_that_closed(struct gpu_rank *rank)
{
    bool first = !rondo_comm_rank(rank->comm);
    rondo_comm *closed = NULL, *next = NULL;
    void *payload = NULL;
    rondo_result result = rondo_cuda_mem_alloc(COUNT * sizeof(int32_t), &payload);

    if (!result)
        result = open_inner(rank, &closed);
    if (first) {
        rondo_comm_close(closed);
        closed = NULL;
    }
    if (!result)
        result = open_inner(rank, &next);
    if (!result && !first)
        result = rondo_broadcast(payload, payload, COUNT, RONDO_INT32, 1, closed, rank->stream);
    if (!result && !first)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = rondo_barrier(rank->outer, NULL);
    if (!result && first && !is_empty(next))
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                           "the next communicator got the message of a closed one");
    rondo_comm_close(closed);
    rondo_comm_close(next);
    rondo_cuda_mem_free(payload);
    return result;
}

static rondo_result calls_one_that_closed(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, call_one_that_closed);
}

Test(gpu_arenas, the_next_communicator_gets_no_message_of_a_closed_one)
{
    struct gpu_scene scene = {.devices = 2};
    const struct world world = {.size = 2, .processes = true};

    cr_assert(world_run(&world, calls_one_that_closed, &scene, &report) == 0, "%s", report.summary);
}
