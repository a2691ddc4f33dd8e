/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_share.c - device memory in the eyes of peers.
 *
 * A buffer is told to peers as a segment and an offset. A segment is a whole allocation: its owner
 * publishes a card with an IPC handle in its arena, rings, and waits until the watch of every peer
 * has mapped it. That happens once per allocation; the watch is a thread, so nobody has to be in a
 * call for it. Ranks that are threads of one process need none of this: for them segment 0 is the
 * address space.
 */
#include "comm/gpu_arena.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/health.h"
#include "transport/process.h"

#include <string.h>
#include <time.h>

enum { GRAIN = 512 }; /* bytes */

static uint64_t word_of(uint32_t rank, uint32_t segment, uint64_t offset)
{
    return (uint64_t)(rank * GPU_SEGMENTS + segment) << CUDA_WORD_SEGMENT_SHIFT | offset;
}

/* ---- The owner's side ------------------------------------------------------------------------ */

static rondo_result publish(struct gpu_plans *plans, const struct gpu_segment *segment)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_segment_card *card = &plans->own->segments[plans->segment_count];
    CUipcMemHandle handle;
    rondo_result result =
        cuda_result(cuda->cuIpcGetMemHandle(&handle, segment->base), "cuIpcGetMemHandle");

    if (result)
        return result;
    _Static_assert(sizeof(handle) == sizeof(card->handle), "what travels is a CUDA IPC handle");
    card->base = segment->base;
    card->bytes = segment->bytes;
    memcpy(card->handle, &handle, sizeof(handle));
    plans->segments[plans->segment_count++] = *segment;
    /* Own kernels may be pointed to it too, by messages of this rank to itself. */
    plans->table[plans->comm->rank * GPU_SEGMENTS + (int)plans->segment_count - 1] =
        (struct cuda_segment){segment->base, segment->bytes};
    atomic_store_explicit(&plans->own->published, plans->segment_count, memory_order_release);
    gpu_ring(plans);
    log_debug("device memory of %zu bytes is shown to %d peers", (size_t)segment->bytes,
              plans->comm->size - 1);
    return RONDO_OK;
}

/* The first rank that has not mapped all that was published, -1: all have. */
static int find_late(const struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;

    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && atomic_load_explicit(gpu_mapped(plans->own, comm->size, rank),
                                                       memory_order_acquire) < plans->segment_count)
            return rank;
    return -1;
}

static rondo_result await_mapped(struct gpu_plans *plans)
{
    const struct timespec doze = {0, 50 * 1000};
    rondo_comm *comm = plans->comm;
    double began = clock_seconds();
    double patience = comm->settings.timeout;

    for (int rank = find_late(plans); rank >= 0; rank = find_late(plans)) {
        rondo_result result = comm_check(comm);

        if (!result)
            result = health_adopt(comm);
        if (result)
            return result;
        if (!process_alive(comm->processes[rank])) {
            rondo_fail(RONDO_ERROR_PEER,
                       "Rank %d (process %d) has ended while rank %d waited for it to map device "
                       "memory.",
                       rank, process_id(comm->processes[rank]), comm->rank);
            return comm_break(comm, RONDO_ERROR_PEER, rank);
        }
        if (patience > 0 && clock_seconds() - began > patience) {
            rondo_fail(RONDO_ERROR_TIMEOUT,
                       "Rank %d waited %.1f s for rank %d to map device memory. RONDO_TIMEOUT sets "
                       "how long to wait.",
                       comm->rank, patience, rank);
            return comm_break(comm, RONDO_ERROR_TIMEOUT, rank);
        }
        nanosleep(&doze, NULL);
    }
    return RONDO_OK;
}

/* What CUDA knows about the allocation; RONDO_IN_PROGRESS if IPC does not take it. */
static rondo_result look_up(const struct gpu_plans *plans, CUdeviceptr memory,
                            struct gpu_segment *ret_segment)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    int capable = 0;
    unsigned long long id = 0;
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void *values[] = {&base, &bytes, &capable, &id};

    if (cuda->cuPointerGetAttributes(4, names, values, memory) || !capable || !base)
        return RONDO_IN_PROGRESS;
    /* Real programs reduce four elements of a four-byte buffer: CUDA gives whole GRAINs away. */
    *ret_segment =
        (struct gpu_segment){.id = id, .base = base, .bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN};
    return RONDO_OK;
}

rondo_result gpu_share(struct gpu_plans *plans, CUdeviceptr memory, uint32_t most,
                       uint64_t *ret_word)
{
    uint32_t own = (uint32_t)plans->comm->rank;
    struct gpu_segment wanted;
    rondo_result result;
    uint32_t at = 0;

    if (plans->comm->one_process) {
        *ret_word = word_of(own, 0, memory);
        return RONDO_OK;
    }
    result = look_up(plans, memory, &wanted);
    if (result)
        return result;
    while (at < plans->segment_count && plans->segments[at].id != wanted.id)
        at++;
    if (at == plans->segment_count) {
        if (at >= most)
            return RONDO_IN_PROGRESS;
        result = publish(plans, &wanted);
        if (!result)
            result = await_mapped(plans);
        if (result)
            return result;
    }
    *ret_word = word_of(own, at, memory - wanted.base);
    return RONDO_OK;
}

/* ---- The peers' side ------------------------------------------------------------------------- */

rondo_result gpu_map(struct gpu_plans *plans, int rank, const struct gpu_segment_card *card,
                     CUdeviceptr *ret_base)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUipcMemHandle handle;

    if (process_is_own(plans->comm->processes[rank])) {
        *ret_base = card->base;
        return RONDO_OK;
    }
    memcpy(&handle, card->handle, sizeof(handle));
    return cuda_result(
        cuda->cuIpcOpenMemHandle(ret_base, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        "cuIpcOpenMemHandle of a peer's memory (do the ranks share a PID and an IPC namespace? "
        "RONDO_CUDA=host goes without)");
}

static rondo_result map_of_rank(struct gpu_plans *plans, int rank)
{
    const rondo_comm *comm = plans->comm;
    struct gpu_arena *arena = plans->views[rank].arena;
    uint32_t published = atomic_load_explicit(&arena->published, memory_order_acquire);
    rondo_result result = RONDO_OK;

    if (published > GPU_SEGMENTS)
        return rondo_fail(RONDO_ERROR_PEER,
                          "Rank %d shows %u pieces of device memory, which is "
                          "more than there is room for.",
                          rank, published);
    while (plans->mapped[rank] < published && !result) {
        uint32_t at = plans->mapped[rank];
        CUdeviceptr base = 0;

        result = gpu_map(plans, rank, &arena->segments[at], &base);
        if (result)
            break;
        plans->table[rank * GPU_SEGMENTS + (int)at] =
            (struct cuda_segment){base, arena->segments[at].bytes};
        plans->mapped[rank]++;
        /* Release: the table has it before the owner tells kernels of it. */
        atomic_store_explicit(gpu_mapped(arena, comm->size, comm->rank), plans->mapped[rank],
                              memory_order_release);
    }
    return result;
}

rondo_result gpu_map_new(struct gpu_plans *plans)
{
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < plans->comm->size && !result; rank++)
        if (rank != plans->comm->rank)
            result = map_of_rank(plans, rank);
    return result;
}

void gpu_unmap_all(struct gpu_plans *plans)
{
    for (int rank = 0; rank < plans->comm->size; rank++) {
        const struct process *process = plans->comm->processes[rank];

        if (!process || process_is_own(process))
            continue;
        for (uint32_t i = 0; i < plans->mapped[rank]; i++)
            plans->gpu->device.driver->cuIpcCloseMemHandle(
                plans->table[rank * GPU_SEGMENTS + (int)i].base);
    }
}
