/* SPDX-License-Identifier: BSD-3-Clause */
/* 06_split.c - odd and even ranks get a communicator each;
 * the first ranks of both then talk to each other. */
#include <rondo/rondo.h>

#include <stdio.h>

static rondo_result run(rondo_comm *world, rondo_comm **part, rondo_comm **leaders)
{
    int rank = rondo_comm_rank(world), sum = rank, total;
    rondo_result result;

    if ((result = rondo_comm_split(world, rank % 2, rank, NULL, part)) ||
        (result = rondo_all_reduce(&sum, &sum, 1, RONDO_INT32, RONDO_SUM, *part, NULL)))
        return result;

    /* Color -1: takes part in the split, but gets no communicator. */
    total = sum;
    result = rondo_comm_split(world, rondo_comm_rank(*part) == 0 ? 0 : -1, rank, NULL, leaders);
    if (!result && *leaders)
        result = rondo_all_reduce(&total, &total, 1, RONDO_INT32, RONDO_SUM, *leaders, NULL);
    if (!result)
        result = rondo_broadcast(&total, &total, 1, RONDO_INT32, 0, *part, NULL);
    if (!result)
        printf("rank %d of %d: my part sums to %d, all to %d\n", rank, rondo_comm_size(world), sum,
               total);
    return result;
}

int main(void)
{
    rondo_comm *world = NULL, *part = NULL, *leaders = NULL;
    rondo_result result = rondo_comm_open(NULL, &world);

    if (!result)
        result = run(world, &part, &leaders);
    if (result)
        fprintf(stderr, "%s\n", rondo_last_error(NULL));
    rondo_comm_close(leaders);
    rondo_comm_close(part);
    rondo_comm_close(world);
    return result != RONDO_OK;
}
