/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery_0.c - a loop that ends with the first rank that ends. docs/recovery.md goes on. */
#include <rondo/check.h>

#include <signal.h>
#include <stdio.h>

enum { SAMPLES = 24, RANKS = 4, VICTIM = 2, ITS_LAST_STEP = 2 };

static rondo_comm *comm;

/* Each rank learns from a sample of its own; the sum of what they learned goes to all. */
static rondo_result step(int number, int sample, int *ret_sum)
{
    int learned = sample < SAMPLES ? sample : 0;

    if (number == VICTIM && sample == ITS_LAST_STEP * RANKS + VICTIM)
        raise(SIGKILL); /* what this page is about */
    return rondo_all_reduce(&learned, ret_sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

int main(void)
{
    int number, next = 0, total = 0, sum;

    RONDO_CHECK(rondo_comm_open(NULL, &comm));
    number = rondo_comm_rank(comm);
    while (next < SAMPLES) {
        int sample = next + rondo_comm_rank(comm);

        next += rondo_comm_size(comm);
        RONDO_CHECK(step(number, sample, &sum));
        total += sum;
    }
    printf("rank %d of %d: the total is %d\n", rondo_comm_rank(comm), rondo_comm_size(comm), total);
    rondo_comm_close(comm);
    return 0;
}
