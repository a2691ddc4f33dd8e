/* SPDX-License-Identifier: BSD-3-Clause */
/* 02_threads.c - all ranks in one process: a communicator
 * for each, a thread for each. Nothing to launch. */
#include <rondo/check.h>

#include <pthread.h>
#include <stdio.h>

enum { RANKS = 4 };

static void *rank_main(void *argument)
{
    rondo_comm *comm = argument;
    int mine = rondo_comm_rank(comm) + 1, all[RANKS];

    /* Block r of the output is what rank r gave. */
    RONDO_CHECK(rondo_all_gather(&mine, all, 1, RONDO_INT32, comm, NULL));
    printf("rank %d has %d %d %d %d\n", rondo_comm_rank(comm), all[0], all[1], all[2], all[3]);
    return NULL;
}

int main(void)
{
    rondo_comm *comms[RANKS];
    pthread_t threads[RANKS];

    RONDO_CHECK(rondo_comm_open_all(RANKS, NULL, comms));
    for (int r = 0; r < RANKS; r++)
        pthread_create(&threads[r], NULL, rank_main, comms[r]);
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(comms[r]);
    return 0;
}
