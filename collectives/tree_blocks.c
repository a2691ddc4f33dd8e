/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree_blocks.c - n binomial trees at once: block b travels along a tree whose root is rank b.
 *
 * Node v of the tree of block b is rank b + v. In the round of distance D each node v that is a
 * multiple of 2D passes the block on to node v + D. The largest distance comes first: few blocks go
 * far, many go near. 8 ranks, the tree of block 0:
 *
 *     D = 4    0 ------------> 4
 *     D = 2    0 ----> 2       4 ----> 6
 *     D = 1    0 > 1   2 > 3   4 > 5   6 > 7
 *
 * All trees are the same but for a turn, so in a round every rank sends as many blocks to the right
 * as it takes from the left. It does so in turn, one sent, one taken: two slots are enough.
 * reduce_scatter is the mirror image in time: from the leaves inwards, smallest distance first,
 * data travels left, and each node adds what arrives to its partial sum.
 *
 * Invariant: before the round of distance D, the nodes v that are multiples of 2D have the block.
 * Cost: ceil(log2 n) rounds, n-1 blocks out of each rank.
 */
#include "collectives/tree_blocks.h"

#include "collectives/operands.h"

enum { CHANNEL = 0 };

/* The largest distance: half of the least power of two that is not below the size. */
static int farthest(int size)
{
    int distance = 1;

    while (distance < size - distance)
        distance *= 2;
    return size > 1 ? distance : 0;
}

void tree_all_gather(struct plan *plan)
{
    int n = plan->size;

    plan_shape(plan, 1, 1, 0);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, plan->rank, 0)));
    for (int distance = farthest(n); distance > 0; distance /= 2) {
        for (int v = 0; v < n - distance; v += 2 * distance) {
            struct plan_operand mine = plan_output(plan, rank_at(plan, -v), 0);
            struct plan_operand next = plan_output(plan, rank_at(plan, -v - distance), 0);

            plan_combine(plan, 1, 0, PLAN_LIST(mine),
                         PLAN_LIST(plan_slot(rank_at(plan, distance), CHANNEL)));
            plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(rank_at(plan, -distance), CHANNEL)),
                         PLAN_LIST(next));
        }
    }
}

/* Node v, a multiple of twice the distance, keeps its partial sum here: the root in its output. */
static struct plan_operand partial(const struct plan *plan, int v)
{
    return v ? plan_scratch(plan, v / 2 - 1, 0) : plan_output(plan, 0, 0);
}

/* Node v has its raw share before the round of `distance`, until a child has added to it. */
static struct plan_operand share(const struct plan *plan, int v, int distance)
{
    if (distance == 1 || v == plan->size - 1)
        return plan_input(plan, rank_at(plan, -v), 0);
    return partial(plan, v);
}

void tree_reduce_scatter(struct plan *plan)
{
    int n = plan->size;

    plan_shape(plan, 1, 1, n > 2 ? (unsigned)(n - 2) / 2 : 0);
    if (n == 1)
        plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(plan_input(plan, 0, 0)),
                     PLAN_LIST(plan_output(plan, 0, 0)));
    for (int distance = 1; distance <= farthest(n); distance *= 2) {
        for (int v = 0; v < n - distance; v += 2 * distance) {
            bool complete = v == 0 && distance == farthest(n);

            plan_combine(plan, 1, 0, PLAN_LIST(share(plan, v + distance, distance)),
                         PLAN_LIST(plan_slot(rank_at(plan, -distance), CHANNEL)));
            plan_combine(
                plan, 1, complete ? PLAN_FINISH : 0,
                PLAN_LIST(share(plan, v, distance), plan_slot(rank_at(plan, distance), CHANNEL)),
                PLAN_LIST(partial(plan, v)));
        }
    }
}
