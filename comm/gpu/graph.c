/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.c - calls that a graph runs: the host does not see them begin, and keeps nothing of
 * them.
 *
 * Instead, what such a call is about to wait for is written by its stream into one word of the
 * progress, and cleared after the wait:
 *
 *     | 1 | data : 1 | lane : 14 | peer : 16 | fingerprint : 32 |
 *
 * That is all that the watch needs to see that the peer is dead, and to let the call go when the
 * communicator is broken. How long a graph waits is not known: the same word may be of many
 * launches, so a graph has no timeout.
 */
#include "comm/gpu/plan.h"

#include "comm/failure/health.h"

#define WAITS      (UINT64_C(1) << 63)
#define WAITS_DATA (UINT64_C(1) << 62)
#define LANE_SHIFT 48
#define LANE_MASK  0x3fff
#define PEER_SHIFT 32
#define PEER_MASK  0xffff

static CUdeviceptr word_of(const struct gpu_plans *plans)
{
    return plans->device_progress + offsetof(struct gpu_progress, waiting);
}

void gpu_graph_note_wait(struct gpu_run *run, int peer, int lane, bool data)
{
    gpu_ops_write_word(&run->ops, word_of(run->plans),
                       WAITS | (data ? WAITS_DATA : 0) | (uint64_t)lane << LANE_SHIFT |
                           (uint64_t)peer << PEER_SHIFT | run->fingerprint);
}

void gpu_graph_note_none(struct gpu_run *run)
{
    gpu_ops_write_word(&run->ops, word_of(run->plans), 0);
}

/* ---- The watch ------------------------------------------------------------------------------- */

struct wait {
    int peer, lane;
    bool data; /* for a message; or else until the own one was taken */
    uint32_t fingerprint;
};

bool gpu_graph_waits(const struct gpu_plans *plans)
{
    return atomic_load_explicit(&plans->progress->waiting, memory_order_acquire) & WAITS;
}

static bool read_wait(const struct gpu_plans *plans, struct wait *ret_wait)
{
    uint64_t word = atomic_load_explicit(&plans->progress->waiting, memory_order_acquire);
    struct wait wait = {.peer = (int)(word >> PEER_SHIFT & PEER_MASK),
                        .lane = (int)(word >> LANE_SHIFT & LANE_MASK),
                        .data = word & WAITS_DATA,
                        .fingerprint = (uint32_t)word};

    *ret_wait = wait;
    return word & WAITS && wait.peer < plans->comm->size && wait.lane < GPU_LANES;
}

/* The flag that it waits for, and what it has to be. */
static _Atomic uint32_t *flag_of(const struct gpu_plans *plans, const struct wait *wait,
                                 uint32_t *ret_wanted)
{
    struct gpu_arena *arena = wait->data ? plans->own : plans->views[wait->peer].arena;
    int from = wait->data ? wait->peer : plans->comm->rank;

    *ret_wanted = wait->data ? wait->fingerprint : 0;
    return &gpu_mail(arena, from, wait->lane)->full;
}

/* The rank that a call of a graph waits for now, -1: none. */
static int blamed(struct gpu_plans *plans)
{
    struct wait wait;
    uint32_t wanted;
    _Atomic uint32_t *flag;

    if (!read_wait(plans, &wait))
        return gpu_kernel_blamed(plans);
    flag = flag_of(plans, &wait, &wanted);
    return atomic_load_explicit(flag, memory_order_acquire) == wanted ? -1 : wait.peer;
}

void gpu_graph_look_after(struct gpu_plans *plans)
{
    int peer = blamed(plans);

    health_graph_check(plans->comm, peer, peer >= 0 && peer == plans->graph_blamed);
    plans->graph_blamed = peer;
}

void gpu_graph_let_go(struct gpu_plans *plans)
{
    struct wait wait;
    uint32_t wanted;
    _Atomic uint32_t *flag;

    if (!read_wait(plans, &wait))
        return;
    flag = flag_of(plans, &wait, &wanted);
    atomic_store_explicit(flag, wanted, memory_order_release);
}
