/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.c - device memory in the eyes of peers.
 *
 * A buffer is told to peers as a slot and an offset. In a slot is a region: a whole allocation, or
 * neighbouring pieces of virtual memory management. Its owner puts an order into its arena, rings,
 * and waits until a thread of every peer has mapped the region (map.c). That happens once per
 * region; as it is a thread, nobody has to be in a call for it. Ranks that are threads of one
 * process need none of this: for them region 0 is the address space.
 *
 * A slot is used again when what was in it has been freed or was not used for long. Peers touch a
 * region only while a call of its owner is on its way, so the owner alone knows when: as soon as
 * the last call that told of it has ended here. What graphs know of stays, unless it was freed.
 */
#include "comm/failure/error.h"
#include "comm/gpu/arena.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/failure/health.h"
#include "transport/memory/process.h"

#include <string.h>
#include <unistd.h>

enum {
    GRAIN = 512,       /* bytes */
    LONG_UNUSED = 256, /* calls, after which a region makes room for another one */
    BACKOFF = 64,      /* calls, after which peers that had no room are asked again */
};

static uint64_t word_of(uint32_t rank, uint32_t slot, uint64_t offset)
{
    return (uint64_t)(rank * GPU_REGIONS + slot) << CUDA_WORD_REGION_SHIFT | offset;
}

/* ---- What memory is -------------------------------------------------------------------------- */

/* Ask CUDA about the allocation at that address. */
static bool ask(const struct cuda_driver *cuda, CUdeviceptr memory, struct gpu_piece *ret_piece,
                bool *ret_by_handle)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    int capable = 0;
    unsigned long long id = 0;
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void *values[] = {&base, &bytes, &capable, &id};

    if (cuda->cuPointerGetAttributes(4, names, values, memory) || !base || !bytes)
        return false;
    *ret_piece = (struct gpu_piece){.id = id, .base = base, .bytes = bytes};
    *ret_by_handle = capable;
    return true;
}

/* The region that the memory needs; false: there is none that could be shared. */
static bool look_up(const struct gpu_plans *plans, CUdeviceptr memory, size_t bytes,
                    struct gpu_region *ret_region)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUdeviceptr at = memory;

    memset(ret_region, 0, offsetof(struct gpu_region, piece));
    do {
        struct gpu_piece *piece = &ret_region->piece[ret_region->pieces];
        bool by_handle = false;

        if (ret_region->pieces == GPU_PIECES || !ask(cuda, at, piece, &by_handle))
            return false;
        if (by_handle) {
            /* Real programs reduce four elements of a four-byte buffer: CUDA gives GRAINs away. */
            piece->bytes = (piece->bytes + GRAIN - 1) / GRAIN * GRAIN;
            ret_region->pieces++;
            return ret_region->pieces == 1;
        }
        if (!piece->id || plans->pieces_refused)
            return false;
        ret_region->pieces++;
        ret_region->files = true;
        at = piece->base + piece->bytes;
    } while (at < memory + bytes);
    return true;
}

static bool holds(const struct gpu_region *region, const struct gpu_region *wanted)
{
    size_t bytes = (size_t)wanted->pieces * sizeof(wanted->piece[0]);

    for (int i = 0; i + wanted->pieces <= region->pieces; i++)
        if (memcmp(&region->piece[i], wanted->piece, bytes) == 0)
            return true;
    return false;
}

bool gpu_is_reached(const struct gpu_plans *plans, CUdeviceptr memory, size_t bytes)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    bool reached = true;

    for (CUdeviceptr at = memory; plans->peer_device_count && reached && at < memory + bytes;) {
        struct gpu_piece piece;
        bool by_handle = false;

        if (!ask(cuda, at, &piece, &by_handle))
            return false;
        if (by_handle) /* the context's memory, which peers are allowed to use */
            return true;
        for (int i = 0; i < plans->peer_device_count && reached; i++)
            reached = cuda_piece_reaches(cuda, at, plans->peer_devices[i]);
        at = piece.base + piece.bytes;
    }
    return reached;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Acquire: peers have touched it before the call that ended. */
static bool is_idle(const struct gpu_plans *plans, const struct gpu_region *region)
{
    uint32_t ended = atomic_load_explicit(&plans->progress->ended, memory_order_acquire);

    return (int32_t)(ended - region->used) >= 0;
}

static bool is_gone(const struct gpu_plans *plans, const struct gpu_region *region)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    bool gone = false;

    for (int i = 0; i < region->pieces && !gone; i++) {
        unsigned long long id = 0;

        gone = cuda->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                           region->piece[i].base) ||
               id != region->piece[i].id;
    }
    return gone;
}

/* A slot for one more region, -1: none can be had now. Substitutes take free ones if there are. */
static int find_slot(const struct gpu_plans *plans, bool own)
{
    int empty = -1, gone = -1, oldest = -1, users = 0;
    uint32_t most = LONG_UNUSED;

    for (int i = 0; i < GPU_REGIONS; i++) {
        const struct gpu_region *region = &plans->regions[i];
        uint32_t unused = plans->calls - region->used;

        if (!region->pieces)
            empty = empty < 0 ? i : empty;
        users += region->pieces && !region->own;
        if (!region->pieces || region->own || !is_idle(plans, region))
            continue;
        if (gone < 0 && is_gone(plans, region))
            gone = i;
        if (!region->kept && unused > most) {
            oldest = i;
            most = unused;
        }
    }
    if (own)
        return empty >= 0 ? empty : gone;
    if (gone >= 0)
        return gone;
    return users < GPU_USER_REGIONS && empty >= 0 ? empty : oldest;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

/* The first rank that has not answered, -1: all have; and the worst answer so far. */
static int find_late(const struct gpu_plans *plans, uint32_t number, uint32_t *ret_answer)
{
    const rondo_comm *comm = plans->comm;

    *ret_answer = GPU_DONE;
    for (int rank = 0; rank < comm->size; rank++) {
        uint32_t answer;

        if (rank == comm->rank)
            continue;
        answer =
            atomic_load_explicit(gpu_answer(plans->own, comm->size, rank), memory_order_acquire);
        if ((answer ^ number << GPU_ANSWER_BITS) >> GPU_ANSWER_BITS)
            return rank;
        answer &= (1u << GPU_ANSWER_BITS) - 1;
        if (answer && *ret_answer != GPU_CANNOT)
            *ret_answer = answer;
    }
    return -1;
}

/* Why the rank that has not answered will not, RONDO_OK: it still may. */
static rondo_result check_late(struct gpu_plans *plans, int rank, double waited)
{
    rondo_comm *comm = plans->comm;
    double patience = comm_timeout(comm);
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
    if (patience > 0 && waited > patience) {
        rondo_fail(RONDO_ERROR_TIMEOUT,
                   "Rank %d waited %.1f s for rank %d to map device memory. RONDO_TIMEOUT sets "
                   "how long to wait.",
                   comm->rank, patience, rank);
        return comm_break(comm, RONDO_ERROR_TIMEOUT, rank);
    }
    return RONDO_OK;
}

/* The peer's own wait began before, and so will its timeout: it does not say what helps. */
static void warn_late(const struct gpu_plans *plans, int rank)
{
    log_warn("rank %d has not mapped device memory of rank %d yet: it may be in a free behind a "
             "call that waits for this one. Messages that a group sends together need no mapping "
             "if RONDO_CUDA_RESERVE has room for all of them",
             rank, plans->comm->rank);
}

/* RONDO_IN_PROGRESS: not all have answered in `patience` seconds; less than 0: for ever. */
static rondo_result await_answers(struct gpu_plans *plans, double patience, uint32_t *ret_answer)
{
    uint32_t number = atomic_load_explicit(&plans->own->ordered, memory_order_relaxed);
    double began = clock_seconds();
    bool warned = false;

    for (int rank = find_late(plans, number, ret_answer); rank >= 0;
         rank = find_late(plans, number, ret_answer)) {
        double waited = clock_seconds() - began;
        rondo_result result = check_late(plans, rank, waited);

        if (plans->own->order.pieces)
            gpu_fd_server_serve(plans);
        if (result)
            return result;
        if (patience >= 0 && waited > patience)
            return RONDO_IN_PROGRESS;
        if (waited > PATIENCE_MAP && !warned)
            warn_late(plans, rank);
        warned = waited > PATIENCE_MAP;
        doze_for(DOZE_PEER);
    }
    return RONDO_OK;
}

static uint64_t bytes_of(const struct gpu_region *region)
{
    uint64_t bytes = 0;

    for (int i = 0; i < region->pieces; i++)
        bytes += region->piece[i].bytes;
    return bytes;
}

/* Own kernels may be pointed to it too, by messages of this rank to itself. */
static void show_own(struct gpu_plans *plans, const struct gpu_region *region, int slot)
{
    plans->table[plans->comm->rank * GPU_REGIONS + slot] =
        (struct cuda_region){region->piece[0].base, bytes_of(region)};
    gpu_note_change(plans->own);
}

static void close_files(const struct gpu_order *order)
{
    for (int i = 0; i < order->pieces; i++)
        close(order->piece[i].file);
}

/* RONDO_IN_PROGRESS: the memory was not made to be shared. */
static rondo_result write_order(struct gpu_plans *plans, const struct gpu_region *region,
                                uint32_t number, uint32_t slot)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_order *order = &plans->own->order;
    rondo_result result = RONDO_OK;

    order->number = number;
    order->slot = slot;
    order->pieces = 0;
    order->region_handle.base = region->piece[0].base;
    order->region_handle.bytes = bytes_of(region);
    if (!region->files) {
        result =
            gpu_hand_out(plans, region->piece[0].base, bytes_of(region), &order->region_handle);
        if (result)
            log_info("device memory is copied before peers read it: %s", fail_sentence());
        return result ? RONDO_IN_PROGRESS : RONDO_OK;
    }
    if (gpu_fd_server_open(plans)) /* then peers need the right to take files */
        log_info("%s", fail_sentence());
    for (int i = 0; i < region->pieces && !result; i++) {
        int file;

        result = cuda_piece_export(cuda, region->piece[i].base, &file);
        if (!result)
            order->piece[order->pieces++] =
                (struct cuda_piece){.bytes = region->piece[i].bytes, .file = file};
    }
    if (result)
        close_files(order);
    return result;
}

/* The order that is out, when all have answered. RONDO_IN_PROGRESS: they have not, and it is still
 * out, or somebody cannot do it. */
static rondo_result end_order(struct gpu_plans *plans, double patience)
{
    const struct gpu_region *region = &plans->pending_region;
    uint32_t answer;
    rondo_result result = await_answers(plans, patience, &answer);

    if (result == RONDO_IN_PROGRESS)
        return result;
    plans->pending = false;
    close_files(&plans->own->order);
    if (result)
        return result;
    if (answer != GPU_DONE) {
        /* What was freed before peers came to it says nothing about other memory. */
        bool refused = answer == GPU_CANNOT && !is_gone(plans, region);

        plans->pieces_refused |= refused && region->files;
        plans->backing_off |= answer == GPU_NOT_NOW || (refused && !region->files);
        plans->backoff_since = plans->calls;
        return RONDO_IN_PROGRESS;
    }
    plans->regions[plans->pending_slot] = *region;
    log_debug("device memory of %zu bytes is shown to %d peers in slot %d",
              (size_t)bytes_of(region), plans->comm->size - 1, plans->pending_slot);
    return RONDO_OK;
}

static rondo_result publish(struct gpu_plans *plans, const struct gpu_region *region, int slot)
{
    uint32_t number = atomic_load_explicit(&plans->own->ordered, memory_order_relaxed) + 1;
    rondo_result result;

    number += !number; /* 0: none */
    result = write_order(plans, region, number, (uint32_t)slot);
    if (result)
        return result;
    plans->regions[slot].pieces = 0;
    plans->pending_region = *region;
    plans->pending_slot = slot;
    plans->pending = true;
    show_own(plans, region, slot);
    atomic_store_explicit(&plans->own->ordered, number, memory_order_release);
    gpu_ring(plans);
    return RONDO_OK;
}

/*
 * How long peers may take to map something that the reserve can stand in for, in seconds: a busy
 * machine is no deadlock, and a graph keeps what it gets. Otherwise they may take as long as they
 * like. A peer that frees memory may have to wait in the driver until the calls that it has queued
 * have ended, with a lock that mapping needs, and such a call may wait for the very call that is
 * being queued here.
 */
static double patience_of(unsigned flags)
{
    return flags & GPU_SHARE_SOON ? PATIENCE_MAP_SOON : -1;
}

/* Make one more region known; its slot, or RONDO_IN_PROGRESS or an error. */
static rondo_result add(struct gpu_plans *plans, const struct gpu_region *region, unsigned flags,
                        int *ret_slot)
{
    rondo_result result = RONDO_OK;

    if (plans->pending) { /* peers that were late before are not waited for once more */
        result = end_order(plans, flags & GPU_SHARE_SOON ? 0 : -1);
        if (plans->pending || (result && result != RONDO_IN_PROGRESS))
            return result;
        *ret_slot = plans->pending_slot;
        if (!result && holds(&plans->regions[*ret_slot], region))
            return RONDO_OK;
    }
    if (plans->backing_off && !region->own && plans->calls - plans->backoff_since < BACKOFF)
        return RONDO_IN_PROGRESS;
    plans->backing_off = false;
    *ret_slot = find_slot(plans, region->own);
    if (*ret_slot < 0)
        return RONDO_IN_PROGRESS;
    result = publish(plans, region, *ret_slot);
    return result ? result : end_order(plans, patience_of(flags));
}

bool gpu_share_reserve(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes)
{
    struct gpu_region *region = &plans->regions[GPU_RESERVE];

    if (!look_up(plans, memory, bytes, region) || region->files) {
        region->pieces = 0;
        rondo_fail(RONDO_ERROR_UNSUPPORTED, "CUDA IPC has no handles for memory of this device.");
        return false;
    }
    region->own = true;
    show_own(plans, region, GPU_RESERVE);
    return !gpu_hand_out(plans, region->piece[0].base, bytes_of(region), &plans->own->reserve);
}

rondo_result gpu_share(struct gpu_plans *plans, CUdeviceptr memory, size_t bytes, unsigned flags,
                       uint64_t *ret_word)
{
    uint32_t rank = (uint32_t)plans->comm->rank;
    struct gpu_region wanted;
    rondo_result result;
    int slot = 0;

    if (plans->comm->one_process) {
        *ret_word = word_of(rank, 0, memory);
        return RONDO_OK;
    }
    if (!look_up(plans, memory, bytes, &wanted))
        return RONDO_IN_PROGRESS;
    wanted.own = flags & GPU_SHARE_OWN;
    while (slot < GPU_REGIONS && !holds(&plans->regions[slot], &wanted))
        slot++;
    if (slot == GPU_REGIONS) {
        result = add(plans, &wanted, flags, &slot);
        if (result)
            return result;
    }
    plans->regions[slot].used = plans->calls;
    plans->regions[slot].kept |= plans->in_graph;
    *ret_word = word_of(rank, (uint32_t)slot, memory - plans->regions[slot].piece[0].base);
    return RONDO_OK;
}
