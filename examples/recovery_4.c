/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery_4.c - others take the places of those that have failed: docs/recovery.md. */
#include <rondo/check.h>
#include <rondo/elastic.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

enum { SAMPLES = 24, RANKS = 4, VICTIM = 2, ITS_LAST_STEP = 2 };

static rondo_elastic *job;
static rondo_elastic_outcome outcome = {.share = 1};
static rondo_comm *comm;

/* Each rank learns from a sample of its own; the sum of what they learned goes to all. */
static rondo_result step(int number, int sample, int *ret_sum)
{
    int learned = sample < SAMPLES ? sample : 0;

    if (number == VICTIM && sample == ITS_LAST_STEP * RANKS + VICTIM)
        raise(SIGKILL); /* what this page is about */
    return rondo_all_reduce(&learned, ret_sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

/* True if all ranks that are left have done the step. Others are left out, newcomers let in. */
static bool counts(int number, bool well)
{
    RONDO_DDP_CHECK(rondo_elastic_agree(job, well, &outcome));
    if (outcome.lost)
        printf("rank %d knows that %d rank has failed\n", number, outcome.lost);
    comm = rondo_elastic_comm(job);
    return outcome.counts;
}

/* Rank 0's state to all, at the beginning and to newcomers. */
static void share(int number, int *next, int *total)
{
    int state[] = {*next, *total};

    if (counts(number, !rondo_broadcast(state, state, 2, RONDO_INT32, 0, comm, NULL))) {
        *next = state[0];
        *total = state[1];
    }
}

int main(void)
{
    int number, next = 0, total = 0, sum;

    RONDO_DDP_CHECK(rondo_elastic_open(NULL, NULL, &job));
    comm = rondo_elastic_comm(job);
    number = rondo_comm_rank(comm);
    while (next < SAMPLES || outcome.share || rondo_comm_size(comm) < RANKS) {
        if (outcome.share) {
            share(number, &next, &total);
            continue;
        }
        int sample = next + rondo_comm_rank(comm), taken = rondo_comm_size(comm);

        if (counts(number, step(number, sample, &sum) == RONDO_OK)) {
            next += taken;
            total += sum;
        }
    }
    printf("rank %d of %d: the total is %d\n", rondo_comm_rank(comm), rondo_comm_size(comm), total);
    rondo_elastic_close(job);
    return 0;
}
