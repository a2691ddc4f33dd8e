/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show_launch.c - a rank of a real job, for the tests of launchers: reads the environment, gathers
 * twice (as a program with two communicators does), and prints "rank 1 of 3 by Open MPI: met 0 1
 * 2".
 */
#include "comm/rendezvous/bootstrap.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

static rondo_result meet(struct launch *ret_launch, int *ret_ranks)
{
    rondo_result result = launch_read(ret_launch);

    if (result)
        return result;
    return bootstrap_all_gather(&ret_launch->place, ret_launch->rank, ret_launch->size,
                                !ret_launch->served, 20, &ret_launch->rank, sizeof(int), ret_ranks);
}

int main(void)
{
    static int ranks[1024];
    char met[1024] = "";
    struct launch launch;

    for (int round = 0; round < 2; round++) {
        memset(ranks, -1, sizeof(ranks));
        if (meet(&launch, ranks)) {
            fprintf(stderr, "%s\n", fail_sentence());
            return 1;
        }
    }
    for (int i = 0; i < launch.size && strlen(met) < 1000; i++)
        snprintf(met + strlen(met), sizeof(met) - strlen(met), " %d", ranks[i]);
    printf("rank %d of %d by %s (local %d of %d): met%s\n", launch.rank, launch.size,
           launch.launcher, launch.local_rank, launch.local_size, met);
    return 0;
}
