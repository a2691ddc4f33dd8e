/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 04_send_recv_ring.c - a ring all-gather by hand: every rank passes on to its right what came from
 * its left. The send and the receive of a step are one group, so they do not wait for each other:
 * no deadlock.
 */
#include <rondo/check.h>

#include <stdio.h>

enum { RANKS_MAX = 1024 };

static void step(int send, int *ret_received, int right, int left, rondo_comm *comm)
{
    RONDO_CHECK(rondo_group_start());
    RONDO_CHECK(rondo_send(&send, 1, RONDO_INT32, right, comm, NULL));
    RONDO_CHECK(rondo_recv(ret_received, 1, RONDO_INT32, left, comm, NULL));
    RONDO_CHECK(rondo_group_end());
}

int main(void)
{
    rondo_comm *comm;
    int from[RANKS_MAX] = {0}; /* what rank r had */
    int n, rank;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    n = rondo_comm_size(comm);
    rank = rondo_comm_rank(comm);
    if (n > RANKS_MAX)
        return 1;
    from[rank] = 100 + rank;
    for (int s = 0; s < n - 1; s++)
        step(from[(rank - s + n) % n], &from[(rank - s - 1 + n) % n], (rank + 1) % n,
             (rank - 1 + n) % n, comm);
    printf("rank %d of %d: from %d to %d\n", rank, n, from[0], from[n - 1]);
    rondo_comm_close(comm);
    return 0;
}
