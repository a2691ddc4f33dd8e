/* SPDX-License-Identifier: BSD-3-Clause */
/* lease.c - until when the other ranks of this host may touch what a communicator showed them. */
#include "comm/leave.h"

#include "transport/process.h"

#include <stdlib.h>

struct peer {
    struct process *process; /* held: its heap stays mapped, and the board in it */
    const struct board *board;
};

struct peers_lease {
    struct lease lease; /* first: ops get it back */
    uint64_t id;        /* of the communicator */
    int count;
    struct peer peers[];
};

static bool has_left(const struct peers_lease *lease, const struct peer *peer)
{
    const struct board *board = peer->board;

    return atomic_load_explicit(&board->id, memory_order_acquire) != lease->id ||
           atomic_load_explicit(&board->closed, memory_order_acquire) ||
           !process_alive(peer->process);
}

static bool is_over(const struct lease *lease)
{
    const struct peers_lease *peers = (const struct peers_lease *)(const void *)lease;

    for (int i = 0; i < peers->count; i++)
        if (!has_left(peers, &peers->peers[i]))
            return false;
    return true;
}

static void close_lease(struct lease *lease)
{
    struct peers_lease *peers = (struct peers_lease *)(void *)lease;

    for (int i = 0; i < peers->count; i++)
        process_detach(peers->peers[i].process);
    free(peers);
}

static const struct lease_ops ops = {.is_over = is_over, .close = close_lease};

struct lease *leave_lease(const rondo_comm *comm)
{
    struct peers_lease *lease =
        calloc(1, sizeof(*lease) + (size_t)comm->size * sizeof(lease->peers[0]));

    if (!lease)
        return NULL;
    lease->lease.ops = &ops;
    lease->id = comm->id;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank || !comm->alarms[rank])
            continue;
        process_hold(comm->processes[rank]);
        lease->peers[lease->count++] =
            (struct peer){.process = comm->processes[rank], .board = comm->boards[rank]};
    }
    return &lease->lease;
}
