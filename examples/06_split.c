/* SPDX-License-Identifier: BSD-3-Clause */
/* 06_split.c - odd and even ranks get a communicator each;
 * the first ranks of both then talk to each other. */
#include <rondo/check.h>

#include <stdio.h>

int main(void)
{
    rondo_comm *world, *part, *leaders;
    int rank, sum, total;

    RONDO_CHECK(rondo_comm_open(NULL, &world));
    rank = sum = rondo_comm_rank(world);
    RONDO_CHECK(rondo_comm_split(world, rank % 2, rank, NULL, &part));
    RONDO_CHECK(rondo_all_reduce(&sum, &sum, 1, RONDO_INT32, RONDO_SUM, part, NULL));

    /* Color -1: takes part in the split, but gets no communicator. */
    total = sum;
    RONDO_CHECK(rondo_comm_split(world, rondo_comm_rank(part) == 0 ? 0 : -1, rank, NULL, &leaders));
    if (leaders)
        RONDO_CHECK(rondo_all_reduce(&total, &total, 1, RONDO_INT32, RONDO_SUM, leaders, NULL));
    RONDO_CHECK(rondo_broadcast(&total, &total, 1, RONDO_INT32, 0, part, NULL));
    printf("rank %d of %d: my part sums to %d, all to %d\n", rank, rondo_comm_size(world), sum,
           total);
    rondo_comm_close(leaders);
    rondo_comm_close(part);
    rondo_comm_close(world);
    return 0;
}
