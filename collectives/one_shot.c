/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_shot.c - everybody tells everybody everything, and each does all the arithmetic alone.
 *
 *     rank 0   in -> slots of 1, 2, 3        out = in + from 1 + from 2 + from 3
 *     rank 1   in -> slots of 0, 2, 3        out = from 0 + in + from 2 + from 3      and so on
 *
 * One round of messages is the least latency there is, so this is for vectors so short that n times
 * the traffic and n times the arithmetic do not matter. All ranks add in rank order in one step:
 * they get the same bits, associated as the balanced tree.
 *
 * What is one round in direct.c already (reduce_scatter, all_gather, broadcast) is not repeated.
 * Cost: 1 round of n-1 messages; n-1 vectors sent and n added up by each rank.
 */
#include "collectives/algorithm.h"
#include "collectives/operands.h"

enum { CHANNEL = 0, CHANNEL_ALL = PLAN_CHANNEL_SHALLOW /* direct.c says why */ };

static void sum_up(struct plan *plan, int channel)
{
    struct operands sources;

    operands_open(&sources, plan);
    operands_add_ranks(&sources, plan, channel, plan_input(plan, 0, 0));
    plan_combine(plan, 1, PLAN_FINISH | PLAN_BALANCED, operands_list(&sources),
                 PLAN_LIST(plan_output(plan, 0, 0)));
    operands_close(&sources);
}

static void all_reduce(struct plan *plan)
{
    struct operands peers;

    plan_shape(plan, 1, 1, 0);
    if (plan->size > 1) {
        operands_open(&peers, plan);
        operands_add_peers(&peers, plan, CHANNEL_ALL);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)), operands_list(&peers));
        operands_close(&peers);
    }
    sum_up(plan, CHANNEL_ALL);
}

static void reduce(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    if (plan->rank == plan->root)
        sum_up(plan, CHANNEL);
    else
        plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                     PLAN_LIST(plan_slot(plan->root, CHANNEL)));
}

/* Everybody tells everybody: one line per peer, all on their way at once. */
static void barrier(struct plan *plan)
{
    plan_shape(plan, 1, 0, 0);
    for (int distance = 1; distance < plan->size; distance++)
        plan_notify(plan, rank_at(plan, distance), CHANNEL, 0);
    for (int distance = 1; distance < plan->size; distance++)
        plan_await(plan, rank_at(plan, -distance), CHANNEL, 0);
}

enum {
    SUMS = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND | PROMISE_IN_PLACE,
};

const struct algorithm one_shot_algorithm = {
    .name = "one_shot",
    .summary = "Everybody sends everything to everybody in one round; least latency.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, SUMS, "1 round of n-1 messages, n-1 vectors sent"},
            [RONDO_REDUCE] = {reduce, SUMS, "1 round, the root takes n-1 vectors"},
            [RONDO_BARRIER] = {barrier, PROMISE_IN_PLACE, "1 round of n-1 empty messages"},
        },
};
