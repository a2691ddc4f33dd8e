/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.c - until when the other ranks of this host may touch what a communicator showed them.
 *
 * A rank that closes a communicator writes so beside the alarm of each peer it knows: into memory
 * of the peer, who finds it there whatever becomes of the rank. One that failed before it knew its
 * peers has it on its status page, which stays. And one that failed to split a communicator, so
 * that it does not know where those pages are, waits until its peers have left that one.
 */
#include "comm/failure/leave.h"

#include "transport/memory/process.h"
#include "transport/memory/shm.h"
#include "transport/memory/shown.h"

#include <stdlib.h>

struct peer {
    int rank;
    struct process *process; /* held: its heap stays mapped, and the status page in it */
    const struct status *status;
};

/* Shared by the leases on the arena and on what was taken back from peers. */
struct peers {
    atomic_int users;
    atomic_bool left;              /* all of them; `alarm` may be gone then */
    const struct shm_alarm *alarm; /* this rank's */
    void *status;                  /* this rank's: it goes with the last lease, NULL: before */
    struct lease *parent;          /* it has to be over, too; NULL: none */
    int count;
    struct peer peers[];
};

struct peers_lease {
    struct lease lease; /* first: ops get it back */
    struct peers *peers;
};

static bool has_left(const struct peers *peers, const struct peer *peer)
{
    return atomic_load_explicit(&peers->alarm->gone[peer->rank], memory_order_acquire) ||
           atomic_load_explicit(&peer->status->closed, memory_order_acquire) == STATUS_CLOSED ||
           !process_alive(peer->process);
}

static bool is_over(const struct lease *lease)
{
    struct peers *peers = ((const struct peers_lease *)(const void *)lease)->peers;
    bool left = atomic_load_explicit(&peers->left, memory_order_acquire);

    if (left)
        return true;
    left = !peers->parent || peers->parent->ops->is_over(peers->parent);
    for (int i = 0; i < peers->count && left; i++)
        left = has_left(peers, &peers->peers[i]);
    if (left)
        atomic_store_explicit(&peers->left, true, memory_order_release);
    return left;
}

static void close_lease(struct lease *lease)
{
    struct peers *peers = ((struct peers_lease *)(void *)lease)->peers;

    free(lease);
    if (atomic_fetch_sub_explicit(&peers->users, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; i < peers->count; i++)
        process_detach(peers->peers[i].process);
    if (peers->status)
        shown_give(peers->status);
    if (peers->parent)
        peers->parent->ops->close(peers->parent);
    free(peers);
}

static const struct lease_ops ops = {.is_over = is_over, .close = close_lease};

static struct peers *find_peers(const rondo_comm *comm)
{
    struct peers *peers = calloc(1, sizeof(*peers) + (size_t)comm->size * sizeof(peers->peers[0]));

    if (!peers)
        return NULL;
    peers->alarm = comm->alarms[comm->rank];
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank || !comm->alarms[rank])
            continue;
        process_hold(comm->processes[rank]);
        peers->peers[peers->count++] = (struct peer){
            .rank = rank, .process = comm->processes[rank], .status = comm->status_pages[rank]};
    }
    return peers;
}

struct lease *leave_lease(const rondo_comm *comm)
{
    struct peers_lease *lease = calloc(1, sizeof(*lease));

    if (!lease)
        return NULL;
    lease->peers =
        comm->lease ? ((struct peers_lease *)(void *)comm->lease)->peers : find_peers(comm);
    if (!lease->peers) {
        free(lease);
        return NULL;
    }
    lease->lease.ops = &ops;
    atomic_fetch_add_explicit(&lease->peers->users, 1, memory_order_relaxed);
    return &lease->lease;
}

void leave_with(rondo_comm *comm, const rondo_comm *parent)
{
    bool broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    struct lease *until = comm->lease || !broken ? NULL : leave_lease(parent);

    if (!until)
        return;
    comm->lease = leave_lease(comm);
    if (comm->lease)
        ((struct peers_lease *)(void *)comm->lease)->peers->parent = until;
    else
        until->ops->close(until);
}

void leave_soon(const rondo_comm *comm)
{
    /* Release, pairs with the acquire in health_has_closed(), to see what this rank said in calls,
     * and with those in is_inside(). */
    if (comm->status)
        atomic_store_explicit(&comm->status->closed, STATUS_CLOSING, memory_order_release);
}

void leave_for_good(const rondo_comm *comm)
{
    if (comm->lease)
        ((struct peers_lease *)(void *)comm->lease)->peers->status = comm->status;
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && comm->alarms[rank])
            /* Release, pairs with the acquire in has_left(): nothing is written there any more. */
            atomic_store_explicit(&comm->alarms[rank]->gone[comm->rank], 1, memory_order_release);
    /* Last, as a peer that sees it may use its memory for something else, and the stores above went
     * there. Release, pairs with the acquire in has_left(). */
    atomic_store_explicit(&comm->status->closed, STATUS_CLOSED, memory_order_release);
}
