/* SPDX-License-Identifier: BSD-3-Clause */
/* test_culprits.c - whom a communicator blames for what its network reports (comm/failure): the toy
 * says what the test wants. */
#include "comm/failure/health.h"
#include "comm/failure/network.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { RANKS = 3 };

static rondo_comm *comms[RANKS];
static struct network_ops ops; /* of rank 0's toy */
static int blamed, forsaken = -1;

static rondo_result lose_blamed(struct network *network, int rank)
{
    network->culprit = blamed;
    return rondo_fail(RONDO_ERROR_PEER, "Rank 0 asked for rank %d and has lost rank %d.", rank,
                      blamed);
}

static void note_forsaken(struct network *network, const struct network_failure *failure)
{
    (void)network;
    if (failure->forsakes)
        forsaken = failure->culprit;
}

/* Rank 1 acknowledges nothing. */
static bool wait_for_second(struct network *network, int *ret_peer)
{
    (void)network;
    *ret_peer = 1;
    return forsaken == 1;
}

static void open_losing(void)
{
    setenv("RONDO_TRANSPORT", "toy", 1);
    cr_assert(rondo_comm_open_all(RANKS, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int i = 0; i < NETWORKS; i++)
        if (comms[0]->networks.open[i]) {
            ops = *comms[0]->networks.open[i]->ops;
            ops.watch = lose_blamed;
            ops.tell = note_forsaken;
            ops.flushed = wait_for_second;
            comms[0]->networks.open[i]->ops = &ops;
        }
}

static void close_losing(void)
{
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(comms[r]);
}

TestSuite(culprits, .init = open_losing, .fini = close_losing, .timeout = 60);

/* Returns whom rank 0 blames for what broke its communicator, -1: nobody. */
static int culprit_of(rondo_result result)
{
    char sentence[FAIL_SENTENCE_MAX];
    int culprit = -1;

    cr_expect(status_failure(comms[0]->status, &culprit, sentence) == result, "%s", sentence);
    return result ? culprit : -1;
}

static void part(int rank)
{
    atomic_store_explicit(&comms[0]->mirrors[rank].closed, STATUS_PARTED, memory_order_relaxed);
}

Test(culprits, are_named_by_the_network_and_not_by_whom_it_was_asked_for)
{
    blamed = 2;
    cr_expect(networks_watch(comms[0], 0) == RONDO_OK, "no network tells of this rank itself");
    cr_expect(networks_watch(comms[0], 1) == RONDO_ERROR_PEER);
    cr_expect_eq(culprit_of(RONDO_ERROR_PEER), 2);
}

Test(culprits, are_those_of_what_another_rank_has_told_before)
{
    blamed = 1;
    status_fail(&comms[0]->mirrors[1], RONDO_ERROR_MISMATCH, 2, "Rank 2 calls something else.");
    cr_expect(networks_watch(comms[0], 1) == RONDO_ERROR_MISMATCH);
    cr_expect_eq(culprit_of(RONDO_ERROR_MISMATCH), 2);
    cr_expect_str_eq(rondo_last_error(comms[0]), "Rank 2 calls something else.");
}

Test(culprits, that_may_part_and_have_are_done_without)
{
    comms[0]->may_part = true;
    part(2);
    blamed = 2;
    cr_expect(networks_watch(comms[0], 1) == RONDO_OK);
    cr_expect_eq(forsaken, 2);
    cr_expect_eq(culprit_of(RONDO_OK), -1);
    blamed = 0;
    cr_expect(networks_watch(comms[0], 2) == RONDO_ERROR_PEER, "it is not the one that has");
    cr_expect_eq(culprit_of(RONDO_ERROR_PEER), 0);
}

Test(culprits, that_have_parted_break_a_call)
{
    part(2);
    blamed = 2;
    cr_expect(networks_watch(comms[0], 2) == RONDO_ERROR_PEER);
    cr_expect_eq(culprit_of(RONDO_ERROR_PEER), 2);
}

Test(culprits, that_have_parted_owe_a_call_no_acknowledgement)
{
    part(1);
    cr_expect(health_flush(comms[0], 0) == RONDO_OK, "%s", fail_sentence());
    cr_expect_eq(culprit_of(RONDO_OK), -1);
}

Test(culprits, that_have_ended_break_a_call_that_they_have_not_acknowledged)
{
    blamed = 1;
    cr_expect(health_flush(comms[0], 0) == RONDO_ERROR_PEER);
    cr_expect_eq(culprit_of(RONDO_ERROR_PEER), 1);
}
