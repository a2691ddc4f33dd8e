/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - ranks in a circle: right = rank + 1, and data travels right.
 *
 * Cut the vector into n chunks. In every step each rank passes one chunk to its right and takes one
 * from its left; n - 1 steps make a lap. On the first lap an arriving chunk is reduced with the
 * local share and goes on at once, so it collects every rank's share on its way round; on the
 * second lap the finished chunk is kept and passed on. Rank 1 of 3:
 *
 *     lap 1, reduce   out c1, in c0 | out c0, in c2     now c2 is complete here
 *     lap 2, copy     out c2, in c1 | out c1, in c0     now all three are
 *
 * reduce_scatter is the first lap alone, all_gather the second. A rooted collective is the circle
 * cut open at the root: a chain, through which the windows of a long vector follow each other.
 * Invariant of lap 1: in step s chunk (rank - s - 1) arrives, the sum of s + 1 ranks to the left.
 * Cost: 2(n-1) steps, 2(n-1)/n of the vector over each link: the least that links allow.
 */
#include "collectives/cost.h"
#include "collectives/operands.h"

enum { LANE = 0 };

static struct plan_operand left(const struct plan *plan)
{
    return plan_slot(rank_at(plan, -1), LANE);
}

static struct plan_operand right(const struct plan *plan)
{
    return plan_slot(rank_at(plan, 1), LANE);
}

/* One rank: the result is a copy. True if that was all. */
static bool alone(struct plan *plan, unsigned flags)
{
    if (plan->size > 1)
        return false;
    plan_combine(plan, 1, flags, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
    return true;
}

static void all_reduce(struct plan *plan)
{
    int n = plan->size;

    plan_shape(plan, (unsigned)n, 1, 0);
    if (alone(plan, PLAN_FINISH))
        return;
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, plan->rank)), PLAN_LIST(right(plan)));
    for (int step = 0; step < n - 2; step++) {
        int chunk = rank_at(plan, -step - 1);
        plan_combine(plan, 1, 0, PLAN_LIST(left(plan), plan_input(plan, 0, chunk)),
                     PLAN_LIST(right(plan)));
    }
    int mine = rank_at(plan, 1); /* n - 1 steps back: the chunk that is complete here */
    plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(left(plan), plan_input(plan, 0, mine)),
                 PLAN_LIST(plan_output(plan, 0, mine), right(plan)));
    for (int step = 0; step < n - 2; step++) {
        int chunk = rank_at(plan, -step);
        plan_combine(plan, 1, 0, PLAN_LIST(left(plan)),
                     PLAN_LIST(plan_output(plan, 0, chunk), right(plan)));
    }
    plan_combine(plan, 1, 0, PLAN_LIST(left(plan)),
                 PLAN_LIST(plan_output(plan, 0, rank_at(plan, 2))));
}

static void reduce_scatter(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    if (alone(plan, PLAN_FINISH))
        return;
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, rank_at(plan, -1), 0)),
                 PLAN_LIST(right(plan)));
    for (int step = 0; step < plan->size - 2; step++) {
        int block = rank_at(plan, -step - 2);
        plan_combine(plan, 1, 0, PLAN_LIST(left(plan), plan_input(plan, block, 0)),
                     PLAN_LIST(right(plan)));
    }
    plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(left(plan), plan_input(plan, plan->rank, 0)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
}

static void all_gather(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    if (alone(plan, 0))
        return;
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, plan->rank, 0), right(plan)));
    for (int step = 0; step < plan->size - 2; step++) {
        int block = rank_at(plan, -step - 1);
        plan_combine(plan, 1, 0, PLAN_LIST(left(plan)),
                     PLAN_LIST(plan_output(plan, block, 0), right(plan)));
    }
    plan_combine(plan, 1, 0, PLAN_LIST(left(plan)),
                 PLAN_LIST(plan_output(plan, rank_at(plan, 1), 0)));
}

/* root -> root + 1 -> ... -> root - 1 */
static void broadcast(struct plan *plan)
{
    struct plan_operand output = plan_output(plan, 0, 0);
    struct plan_operand source = left(plan);

    plan_shape(plan, 1, 1, 0);
    if (plan->rank == plan->root)
        source = plan_input(plan, 0, 0);
    if (rank_at(plan, 1) == plan->root)
        plan_combine(plan, 1, 0, PLAN_LIST(source), PLAN_LIST(output));
    else
        plan_combine(plan, 1, 0, PLAN_LIST(source), PLAN_LIST(output, right(plan)));
}

/* root + 1 -> root + 2 -> ... -> root */
static void reduce(struct plan *plan)
{
    struct plan_operand input = plan_input(plan, 0, 0);

    plan_shape(plan, 1, 1, 0);
    if (alone(plan, PLAN_FINISH))
        return;
    if (plan->rank == plan->root)
        plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(left(plan), input),
                     PLAN_LIST(plan_output(plan, 0, 0)));
    else if (rank_at(plan, -1) == plan->root)
        plan_combine(plan, 1, 0, PLAN_LIST(input), PLAN_LIST(right(plan)));
    else
        plan_combine(plan, 1, 0, PLAN_LIST(left(plan), input), PLAN_LIST(right(plan)));
}

static void cost_all_reduce(int size, double bytes, struct cost *ret_cost)
{
    double chunk = bytes / size;

    *ret_cost = (struct cost){2.0 * (size - 1) * cost_windows(chunk), (1.5 * size - 0.5) * chunk,
                              2 * (size - 1) * chunk, 2 * (size - 1) * chunk};
}

static void cost_reduce_scatter(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){(size - 1) * cost_windows(bytes), bytes, 2.0 * (size - 1) * bytes,
                              (size - 1) * bytes};
}

static void cost_all_gather(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){(size - 1) * cost_windows(bytes), (1.5 * size - 0.5) * bytes, 0,
                              (size - 1) * bytes};
}

static void cost_broadcast(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){size - 1, bytes, 0, (size > 1) * bytes};
    if (size > 1)
        ret_cost->copied = 1.5 * bytes + (1.5 * size - 2) * cost_window(bytes);
}

static void cost_reduce(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){size - 1, bytes, 0, (size > 1) * bytes};
    if (size > 1)
        ret_cost->reduced = 2 * bytes + 2 * (size - 2) * cost_window(bytes);
}

const struct algorithm ring_algorithm = {
    .name = "ring",
    .summary = "Ranks in a circle, each talks to its two neighbours only; best use of every link.",
    .neighbours = true,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE, cost_all_reduce,
                                  "2(n-1) steps, 2(n-1)/n of the vector over each link"},
            [RONDO_REDUCE] = {reduce, PROMISE_IN_PLACE, cost_reduce,
                              "n-1 steps, the vector once over each link, pipelined"},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE, cost_broadcast,
                                 "n-1 steps, the vector once over each link, pipelined"},
            [RONDO_ALL_GATHER] = {all_gather, PROMISE_IN_PLACE, cost_all_gather,
                                  "n-1 steps, n-1 blocks over each link"},
            [RONDO_REDUCE_SCATTER] = {reduce_scatter, PROMISE_IN_PLACE, cost_reduce_scatter,
                                      "n-1 steps, n-1 blocks over each link"},
        },
};
