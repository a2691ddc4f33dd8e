/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - ranks in a circle: right = rank + 1, and data travels right.
 *
 * Cut the vector into n chunks. Each chunk goes on a journey round the circle. On its first lap it
 * collects the share of every rank, on the second one it leaves a copy of the sum with every rank.
 * All chunks travel at the same time, chunk c + 1 one rank ahead of c. Chunk 1 of three ranks:
 *
 *     stop      0            1            2              3            4
 *     rank      1    ---->   2    ---->   0      ---->   1    ---->   2
 *     does    begins        adds      adds, keeps      keeps        keeps
 *                                      complete                      last
 *
 * At stop s a rank therefore meets chunk rank - s; in a reduce_scatter, where block r ends at rank
 * r, it is block rank - s - 1. All five collectives are such journeys:
 *
 *                      travels             complete at   last stop
 *     all_reduce       chunk               n - 1         2n - 2
 *     reduce_scatter   block               n - 1         n - 1       the first lap alone
 *     all_gather       block               0             n - 1       the second lap alone
 *     reduce           the whole vector    n - 1         n - 1       ends at the root
 *     broadcast        the whole vector    0             n - 1       begins at the root
 *
 * With one traveller the circle is a chain: the segments of a long vector follow each other in it.
 *
 * Invariant: up to the stop where it is complete, what arrives at stop s is the sum of s shares.
 * Cost of an all_reduce: 2(n-1) hops, 2(n-1)/n of the vector over each link; no algorithm sends
 * less. Operands are copied into the plan, which notes itself if there was no memory for them.
 */
#include "base/collective.h"
#include "collectives/algorithm.h"
#include "collectives/operands.h"

/* Take what comes from the left and add my share; keep the result and send it on to the right. */
static void visit(struct plan *plan, int stop, struct plan_operand share, struct plan_operand kept)
{
    int lap = plan->size - 1, last = plan->collective == RONDO_ALL_REDUCE ? 2 * lap : lap;
    bool sums = collective_reduces(plan->collective);
    int complete = sums ? lap : 0;
    struct plan_operand from[2], to[2];
    struct plan_list sources = {0, from}, destinations = {0, to};

    if (stop > 0)
        from[sources.count++] = plan_slot(rank_at(plan, -1), 0);
    if (stop <= complete)
        from[sources.count++] = share;
    if (stop >= complete)
        to[destinations.count++] = kept;
    if (stop < last)
        to[destinations.count++] = plan_slot(rank_at(plan, 1), 0);
    plan_combine(plan, 1, sums && stop == complete ? PLAN_FINISH : 0, sources, destinations);
}

static void all_reduce(struct plan *plan)
{
    plan_shape(plan, (unsigned)plan->size, 1, 0);
    for (int stop = 0; stop < 2 * plan->size - 1; stop++) {
        int chunk = rank_at(plan, -stop);

        visit(plan, stop, plan_input(plan, 0, chunk), plan_output(plan, 0, chunk));
    }
}

/* A block ends at the rank of its number, so it begins one rank further to the right. */
static void reduce_scatter(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    for (int stop = 0; stop < plan->size; stop++)
        visit(plan, stop, plan_input(plan, rank_at(plan, -stop - 1), 0), plan_output(plan, 0, 0));
}

static void all_gather(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    for (int stop = 0; stop < plan->size; stop++)
        visit(plan, stop, plan_input(plan, 0, 0), plan_output(plan, rank_at(plan, -stop), 0));
}

/* The whole vector begins at the root of a broadcast, and right of the root of a reduce. */
static void chain(struct plan *plan)
{
    int first = plan->root + collective_reduces(plan->collective);

    plan_shape(plan, 1, 1, 0);
    /* Its distance from where the vector begins is this rank's one stop. */
    visit(plan, rank_at(plan, -first), plan_input(plan, 0, 0), plan_output(plan, 0, 0));
}

const struct algorithm ring_algorithm = {
    "ring",
    "Ranks in a circle, each talks to its two neighbours only; best use of every link.",
    {[RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE,
                           "2(n-1) steps, 2(n-1)/n of the vector over each link"},
     [RONDO_REDUCE] = {chain, PROMISE_IN_PLACE,
                       "n-1 steps, the vector once over each link, pipelined", WAY_CHAIN},
     [RONDO_BROADCAST] = {chain, PROMISE_IN_PLACE,
                          "n-1 steps, the vector once over each link, pipelined", WAY_CHAIN},
     [RONDO_ALL_GATHER] = {all_gather, PROMISE_IN_PLACE, "n-1 steps, n-1 blocks over each link"},
     [RONDO_REDUCE_SCATTER] = {reduce_scatter, PROMISE_IN_PLACE,
                               "n-1 steps, n-1 blocks over each link"}},
    .neighbours = true,
    .any_order = true,
};
