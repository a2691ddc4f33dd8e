/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.c - ranks that are threads of this process queue their calls together, if some of them share
 * a device.
 *
 * The streams of those are of one context and share its few hardware channels: what isn't ready to
 * begin holds up all that was queued behind it, of whichever stream. So a wait must not be queued
 * before the operation that ends it, on whichever device that is: a rank there may itself wait for
 * one that is held up here. The host runs the plan beforehand, on flags of its own:
 *
 *     mailbox on the device     wait: full = fingerprint      write: full = fingerprint
 *     the gate on the host      the same, then queue that     queue that, then the same
 *
 * and whoever queues a kernel that waits for kernels of peers, or a wait for the host's part of a
 * call, goes on when all these peers have queued as much. Such a kernel is queued when all these
 * peers are about to queue theirs: while it spins, the driver may let nobody make a stream.
 * Invariant: an operation depends only on what was queued before it. So no operation waits for one
 * behind it, with one channel neither.
 *
 * Cost: a call on a stream returns when these peers have made theirs. A group with calls of several
 * ranks has a thread for each. A thread that makes their calls one after the other without a group
 * would wait for itself: it is told by its hand, or loses a minute once, and the gate stays open
 * from then on, as it does for graphs, which are launched by others.
 */
#include "comm/engine/group_run.h"
#include "comm/engine/threads.h"
#include "comm/failure/health.h"
#include "comm/failure/leave.h"
#include "comm/gpu/arena.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/log.h"
#include "transport/memory/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct gpu_gate {
    struct gpu_gate *next;
    uint64_t id; /* of the communicator */
    int size, users;
    _Atomic bool open;        /* for ever: somebody waited in vain */
    _Atomic uint32_t *flags;  /* [to][from][channel], as mailboxes will be */
    _Atomic uint32_t *passed; /* [rank]: parts of calls that it has queued */
    _Atomic uint64_t *hands;  /* [rank]: the thread that made the last one */
    _Atomic uint32_t *posted; /* [from][to][received]: messages by way of the host, queued there */
};

static struct gpu_gate *gates;
static struct lock gates_lock = LOCK_AT(LOCK_GPU_GATES);
FORK_RENEWS({.lock = &gates_lock});
static _Thread_local bool not_waiting;

static bool is_member(const rondo_comm *comm, int rank)
{
    static const unsigned char none[DEVICE_UUID];

    return comm->processes[rank] && process_is_own(comm->processes[rank]) &&
           memcmp(comm->endpoints[rank].device.uuid, none, DEVICE_UUID) != 0;
}

static bool some_share_a_device(const rondo_comm *comm)
{
    for (int a = 0; a < comm->size; a++)
        for (int b = 0; b < a && is_member(comm, a); b++)
            if (is_member(comm, b) && memcmp(comm->endpoints[a].device.uuid,
                                             comm->endpoints[b].device.uuid, DEVICE_UUID) == 0)
                return true;
    return false;
}

static void free_gate(struct gpu_gate *gate)
{
    free(gate->flags);
    free(gate->passed);
    free(gate->hands);
    free(gate->posted);
    free(gate);
}

static struct gpu_gate *make_gate(const rondo_comm *comm)
{
    size_t size = (size_t)comm->size;
    struct gpu_gate *gate = calloc(1, sizeof(*gate));

    if (!gate)
        return NULL;
    *gate = (struct gpu_gate){.next = gates, .id = comm->id, .size = comm->size};
    gate->flags = calloc(size * size * GPU_CHANNELS, sizeof(*gate->flags));
    gate->passed = calloc(size, sizeof(*gate->passed));
    gate->hands = calloc(size, sizeof(*gate->hands));
    gate->posted = calloc(size * size * 2, sizeof(*gate->posted));
    if (gate->flags && gate->passed && gate->hands && gate->posted)
        return gates = gate;
    free_gate(gate);
    return NULL;
}

rondo_result gpu_gate_open(rondo_comm *comm)
{
    struct gpu_gate *gate;

    if (!some_share_a_device(comm))
        return RONDO_OK;
    lock_take(&gates_lock);
    for (gate = gates; gate; gate = gate->next)
        if (gate->id == comm->id)
            break;
    if (!gate)
        gate = make_gate(comm);
    if (gate)
        gate->users++;
    comm_gpu(comm)->gate = gate;
    lock_give(&gates_lock);
    if (!gate)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for ranks that share a device.");
    return RONDO_OK;
}

void gpu_gate_close(struct gpu_gate *gate)
{
    struct gpu_gate **at = &gates;
    bool last;

    if (!gate)
        return;
    lock_take(&gates_lock);
    last = --gate->users == 0;
    while (last && *at != gate)
        at = &(*at)->next;
    if (last)
        *at = gate->next;
    lock_give(&gates_lock);
    if (last)
        free_gate(gate);
}

void gpu_gate_wait_for_none(bool none)
{
    not_waiting = none;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

struct condition {
    const _Atomic uint32_t *word;
    uint32_t value;
    enum { IS_ZERO, IS_FULL, HAS_COME } kind;
};

static bool holds(const struct condition *condition)
{
    /* Acquire, pairs with the releases below: what the peer queued is in its stream. */
    uint32_t value = atomic_load_explicit(condition->word, memory_order_acquire);

    if (condition->kind == HAS_COME)
        return (int32_t)(value - condition->value) >= 0;
    return (condition->kind == IS_ZERO) == !value;
}

static void open_gate(struct gpu_gate *gate, const rondo_comm *comm, int peer, const char *why)
{
    if (!atomic_exchange_explicit(&gate->open, true, memory_order_relaxed))
        log_info("rank %d, of this process, %s the call of rank %d: from now on streams of ranks "
                 "that share a device may need a hardware channel each "
                 "(CUDA_DEVICE_MAX_CONNECTIONS)",
                 peer, why, comm->rank);
}

static void await(rondo_comm *comm, int peer, const struct condition *condition)
{
    enum { POLLS = 500 };
    struct gpu_gate *gate = comm_gpu(comm)->gate;
    double began = 0;

    for (int polls = 0; !not_waiting && !group_is_of_many() && !holds(condition); polls++) {
        if (atomic_load_explicit(&gate->open, memory_order_relaxed) ||
            atomic_load_explicit(&comm->broken, memory_order_acquire))
            return;
        if (polls < POLLS) {
            sched_yield();
            continue;
        }
        /* It never comes, as the call's own looks at its peers will find. */
        if (health_has_closed(comm, peer) || (leave_hears(comm) && health_adopt(comm)))
            return;
        began = began > 0 ? began : clock_seconds();
        if (!threads_is_step() &&
            atomic_load_explicit(&gate->hands[peer], memory_order_relaxed) == threads_caller())
            open_gate(gate, comm, peer, "is served by the same thread, which waits in");
        else if (clock_seconds() - began > PATIENCE_GATE)
            open_gate(gate, comm, peer, "has been late for a minute in");
        doze_for(DOZE_PEER);
    }
}

static _Atomic uint32_t *flag_of(const struct gpu_gate *gate, int to, int from, int channel)
{
    return &gate->flags[(to * gate->size + from) * GPU_CHANNELS + channel];
}

bool gpu_gate_has(const rondo_comm *comm, int peer)
{
    return comm_gpu(comm)->gate && is_member(comm, peer);
}

void gpu_gate_tell(const rondo_comm *comm, int to, int from, int channel, uint32_t full)
{
    atomic_store_explicit(flag_of(comm_gpu(comm)->gate, to, from, channel), full,
                          memory_order_release);
}

void gpu_gate_await(rondo_comm *comm, int peer, int channel, bool data)
{
    const struct gpu_gate *gate = comm_gpu(comm)->gate;
    const struct condition condition = {.word = data ? flag_of(gate, comm->rank, peer, channel)
                                                     : flag_of(gate, peer, comm->rank, channel),
                                        .kind = data ? IS_FULL : IS_ZERO};

    await(comm, peer, &condition);
}

/* Release, pairs with the acquire in holds(). */
static uint32_t count_up(_Atomic uint32_t *word)
{
    return atomic_fetch_add_explicit(word, 1, memory_order_release) + 1;
}

/* This rank has queued a part of a call; returns how many by now. */
static uint32_t count_passed(const rondo_comm *comm)
{
    struct gpu_gate *gate = comm_gpu(comm)->gate;

    atomic_store_explicit(&gate->hands[comm->rank], threads_caller(), memory_order_relaxed);
    return count_up(&gate->passed[comm->rank]);
}

static void await_passed(rondo_comm *comm, uint32_t passed)
{
    for (int rank = 0; rank < comm->size; rank++) {
        const struct condition condition = {&comm_gpu(comm)->gate->passed[rank], passed, HAS_COME};

        if (rank != comm->rank && is_member(comm, rank))
            await(comm, rank, &condition);
    }
}

void gpu_gate_pass(rondo_comm *comm)
{
    if (comm_gpu(comm)->gate)
        await_passed(comm, count_passed(comm));
}

/* The messages between this rank and the peer of a task, as one of the two counts them. */
static _Atomic uint32_t *posted(const rondo_comm *comm, const struct choice_key *key, bool received)
{
    const struct gpu_gate *gate = comm_gpu(comm)->gate;
    bool send = key->collective == RONDO_SEND;
    int from = send ? comm->rank : key->root, to = send ? key->root : comm->rank;

    return &gate->posted[(from * gate->size + to) * 2 + received];
}

void gpu_gate_pass_batch(const struct batch *batch)
{
    rondo_comm *comm = batch->comm;
    uint32_t passed = 0;

    if (!comm_gpu(comm)->gate)
        return;
    for (int i = 0; i < batch->count; i++) {
        const struct choice_key *key = &batch->tasks[i].key;

        if (collective_is_pair(key->collective))
            count_up(posted(comm, key, key->collective != RONDO_SEND));
        else
            passed = count_passed(comm);
    }
    if (passed)
        await_passed(comm, passed);
    for (int i = 0; i < batch->count; i++) {
        const struct choice_key *key = &batch->tasks[i].key;
        bool send = key->collective == RONDO_SEND;

        if (collective_is_pair(key->collective) && is_member(comm, key->root))
            await(comm, key->root,
                  &(struct condition){
                      posted(comm, key, send),
                      atomic_load_explicit(posted(comm, key, !send), memory_order_relaxed),
                      HAS_COME});
    }
}
