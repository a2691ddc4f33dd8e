/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 04_send_recv_ring.c - a ring all-gather by hand: every rank passes on to its right what came from
 * its left. The send and the receive of a step are one group, so they do not wait for each other:
 * no deadlock.
 */
#include <rondo/rondo.h>

#include <stdio.h>

enum { RANKS_MAX = 1024 };

static rondo_result step(int send, int *ret_received, int right, int left, rondo_comm *comm)
{
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(&send, 1, RONDO_INT32, right, comm, NULL);
    if (!result)
        result = rondo_recv(ret_received, 1, RONDO_INT32, left, comm, NULL);
    return result ? result : rondo_group_end();
}

int main(void)
{
    rondo_comm *comm = NULL;
    rondo_result result = rondo_comm_open(NULL, &comm);
    int n = result ? 0 : rondo_comm_size(comm), rank = result ? 0 : rondo_comm_rank(comm);
    int from[RANKS_MAX] = {0}; /* what rank r had */

    if (n > RANKS_MAX)
        return 1;
    from[rank] = 100 + rank;
    for (int s = 0; s < n - 1 && !result; s++)
        result = step(from[(rank - s + n) % n], &from[(rank - s - 1 + n) % n], (rank + 1) % n,
                      (rank - 1 + n) % n, comm);
    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(comm));
    else
        printf("rank %d of %d: from %d to %d\n", rank, n, from[0], from[n - 1]);
    rondo_comm_close(comm);
    return result != RONDO_OK;
}
