/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waits.c - what a stream waits for, as the host sees it.
 *
 * Before an operation that waits, a stream writes into one word of the progress what for, and
 * behind it that it works:
 *
 *     | waits : 1 | graph : 1 | data : 1 | channel : 1 | step : 16 | peer : 12 | fingerprint : 32 |
 *
 * That is all that the watchdog needs to see that the peer is dead, or calls something else, and to
 * let the stream go when the communicator is broken. Of calls that a graph runs the host knows
 * nothing else: it does not see them begin. Nor does it know how long they wait, as the same word
 * may be of many launches, so a graph has no timeout.
 */
#include "comm/gpu/plan.h"

#include "comm/failure/health.h"

#define WAITS         (UINT64_C(1) << 63)
#define OF_GRAPH      (UINT64_C(1) << 62)
#define FOR_DATA      (UINT64_C(1) << 61)
#define CHANNEL_SHIFT 60
#define STEP_SHIFT    44
#define STEP_MASK     0xffff
#define PEER_SHIFT    32
#define PEER_MASK     0xfff
#define WORKS         UINT64_C(1)

/* ---- The stream's part ----------------------------------------------------------------------- */

static void write_word(struct gpu_run *run, uint64_t word)
{
    gpu_ops_write_word(&run->ops,
                       run->plans->device_progress + offsetof(struct gpu_progress, waiting), word);
}

/* True if the peer queues its part of the run on this device at this moment. */
static bool is_gated(const struct gpu_run *run, int peer)
{
    return !run->plans->in_graph && gpu_gate_has(run->plans->comm, peer);
}

void gpu_tell_gate(struct gpu_run *run, int to, int from, int channel, uint32_t full)
{
    const rondo_comm *comm = run->plans->comm;

    if (!is_gated(run, to == comm->rank ? from : to))
        return;
    gpu_ops_flush(&run->ops);
    gpu_gate_tell(comm, to, from, channel, full);
}

void gpu_await(struct gpu_run *run, const struct gpu_wait *wait)
{
    const struct gpu_plans *plans = run->plans;
    const struct gpu_view *view = &plans->views[wait->data ? plans->comm->rank : wait->peer];
    int from = wait->data ? wait->peer : plans->comm->rank;

    if (is_gated(run, wait->peer)) {
        gpu_ops_flush(&run->ops);
        gpu_gate_await(plans->comm, wait->peer, wait->channel, wait->data);
    }
    write_word(run, WAITS | (plans->in_graph ? OF_GRAPH : 0) | (wait->data ? FOR_DATA : 0) |
                        (uint64_t)wait->channel << CHANNEL_SHIFT |
                        (uint64_t)(wait->step & STEP_MASK) << STEP_SHIFT |
                        (uint64_t)wait->peer << PEER_SHIFT | run->x.fingerprint);
    gpu_ops_wait(&run->ops, gpu_view_at(view, &gpu_mailbox(view->arena, from, wait->channel)->full),
                 wait->data ? run->x.fingerprint : 0);
    run->noted = NOTED_WAIT;
}

void gpu_go_on(struct gpu_run *run)
{
    if (run->noted != NOTED_WAIT)
        return;
    write_word(run, WORKS);
    run->noted = NOTED_WORK;
}

void gpu_run_close(struct gpu_run *run)
{
    gpu_copies_flush(run);
    if (run->noted)
        write_word(run, 0);
    gpu_timing_close(run);
    if (run->inflight)
        gpu_ops_write(&run->ops, run->plans->device_progress + offsetof(struct gpu_progress, ended),
                      run->inflight->number);
    gpu_ops_flush(&run->ops);
}

/* ---- The watchdog's part --------------------------------------------------------------------- */

bool gpu_wait_read(const struct gpu_plans *plans, struct gpu_wait *ret_wait)
{
    uint64_t word = atomic_load_explicit(&plans->progress->waiting, memory_order_acquire);

    *ret_wait = (struct gpu_wait){.peer = (int)(word >> PEER_SHIFT & PEER_MASK),
                                  .channel = (int)(word >> CHANNEL_SHIFT & 1),
                                  .step = (uint32_t)(word >> STEP_SHIFT & STEP_MASK),
                                  .data = word & FOR_DATA,
                                  .graph = word & OF_GRAPH,
                                  .works = word == WORKS,
                                  .word = word,
                                  .fingerprint = (uint32_t)word};
    return word & WAITS && ret_wait->peer < plans->size;
}

/* The flag that it waits for, and what it has to be. */
static _Atomic uint32_t *flag_of(const struct gpu_plans *plans, const struct gpu_wait *wait,
                                 uint32_t *ret_wanted)
{
    struct gpu_arena *arena = wait->data ? plans->own : plans->views[wait->peer].arena;
    int from = wait->data ? wait->peer : plans->rank;

    *ret_wanted = wait->data ? wait->fingerprint : 0;
    return &gpu_mailbox(arena, from, wait->channel)->full;
}

bool gpu_wait_is_over(const struct gpu_plans *plans, const struct gpu_wait *wait)
{
    uint32_t wanted;
    const _Atomic uint32_t *flag = flag_of(plans, wait, &wanted);

    return atomic_load_explicit(flag, memory_order_acquire) == wanted;
}

void gpu_wait_let_go(const struct gpu_plans *plans)
{
    struct gpu_wait wait;
    uint32_t wanted;
    _Atomic uint32_t *flag;

    if (!gpu_wait_read(plans, &wait))
        return;
    flag = flag_of(plans, &wait, &wanted);
    atomic_store_explicit(flag, wanted, memory_order_release);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

bool gpu_graph_waits(const struct gpu_plans *plans)
{
    struct gpu_wait wait;

    return gpu_wait_read(plans, &wait) && wait.graph;
}

/* The rank that a call of a graph waits for now, -1: none. */
static int blamed(const struct gpu_plans *plans)
{
    struct gpu_wait wait;

    if (!gpu_wait_read(plans, &wait))
        return gpu_kernel_blamed(plans);
    return !wait.graph || gpu_wait_is_over(plans, &wait) ? -1 : wait.peer;
}

void gpu_graph_look_after(struct gpu_plans *plans)
{
    int peer = blamed(plans);

    health_graph_check(plans->comm, peer, peer >= 0 && peer == plans->graph_blamed);
    plans->graph_blamed = peer;
}
