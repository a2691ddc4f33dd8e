/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * binomial.c - a tree that doubles what it reaches in every step; for short vectors and many ranks.
 *
 *     node v        0                    the children of v are v + 1, v + 2, v + 4 ...
 *              ___/ |  \_______          as long as the distance is below v's lowest set bit;
 *             1     2          4         the parent of v is v without that bit; so the subtree
 *                   |        /   \       of v is a run of nodes that begins at v
 *                   3       5     6 - 7
 *
 * Up the tree (reduce, gather) each node waits for its children in ascending order, down the tree
 * (broadcast, scatter) it serves them; either way in one step per node that passes on at once.
 *
 * Invariant of reduce: node v adds itself, then its children in ascending order, so that what goes
 * up is the sum of a run of ranks, associated as the balanced tree over it. The tree has rank 0 on
 * top whatever the root is, to keep that; a root elsewhere gets the result from rank 0.
 * Cost: ceil(log2 n) steps, each with the whole vector; in gather and scatter with whole subtrees.
 */
#include "base/range.h"
#include "collectives/algorithm.h"
#include "collectives/operands.h"

enum {
    UP = 0, /* channels */
    DOWN = 1,
    NEIGHBOURS = 34 /* a parent, the most children that an int can number, and room for oneself */
};

struct node {
    int parent;                      /* rank; -1: top of the tree */
    int extent;                      /* how many nodes its subtree has, itself included */
    int children, child[NEIGHBOURS]; /* ranks, ascending by distance */
    int child_extent[NEIGHBOURS];
};

/* My place when `top` is node 0. */
static struct node place(const struct plan *plan, int top)
{
    int n = plan->size;
    int v = (plan->rank - top + n) % n;
    struct node node = {.parent = -1, .extent = 1};
    long long distance = 1;

    for (; v + distance < n && !(v & distance); distance *= 2) {
        long long rest = n - v - distance; /* nodes from this child on */
        int extent = (int)(rest < distance ? rest : distance);

        node.child[node.children] = (int)((v + distance + top) % n);
        node.child_extent[node.children++] = extent;
        node.extent += extent;
    }
    if (v)
        node.parent = ((v & (v - 1)) + top) % n;
    return node;
}

/* Myself, then the slots of my children. */
static int with_children(const struct node *node, struct plan_operand self, int channel,
                         struct plan_operand operands[NEIGHBOURS])
{
    operands[0] = self;
    for (int i = 0; i < node->children; i++)
        operands[i + 1] = plan_slot(node->child[i], channel);
    return node->children + 1;
}

/* Sum of my subtree: to the parent, or where the top wants it. */
static void sum_up(struct plan *plan, const struct node *node, struct plan_list result)
{
    struct plan_operand sources[NEIGHBOURS];
    int count = with_children(node, plan_input(plan, 0, 0), UP, sources);
    struct plan_list list = {count, sources};

    if (node->parent < 0)
        plan_combine(plan, 1, PLAN_FINISH, list, result);
    else
        plan_combine(plan, 1, 0, list, PLAN_LIST(plan_slot(node->parent, UP)));
}

static void reduce(struct plan *plan)
{
    struct node node = place(plan, 0);
    struct plan_operand output = plan_output(plan, 0, 0);

    plan_shape(plan, 1, 1, 0);
    if (plan->root == 0) {
        sum_up(plan, &node, PLAN_LIST(output));
        return;
    }
    sum_up(plan, &node, PLAN_LIST(plan_slot(plan->root, DOWN)));
    if (plan->rank == plan->root) {
        plan_next_program(plan);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(0, DOWN)), PLAN_LIST(output));
    }
}

static void broadcast(struct plan *plan)
{
    struct node node = place(plan, plan->root);
    struct plan_operand destinations[NEIGHBOURS];
    struct plan_operand source = plan_input(plan, 0, 0);
    int count = with_children(&node, plan_output(plan, 0, 0), DOWN, destinations);

    plan_shape(plan, 1, 1, 0);
    if (node.parent >= 0)
        source = plan_slot(node.parent, DOWN);
    plan_combine(plan, 1, 0, PLAN_LIST(source), (struct plan_list){count, destinations});
}

/* Up to rank 0 and down again, in two programs: segments going up pass those going down. */
static void all_reduce(struct plan *plan)
{
    struct node node = place(plan, 0);
    struct plan_operand destinations[NEIGHBOURS];
    int count = with_children(&node, plan_output(plan, 0, 0), DOWN, destinations);
    struct plan_list down = {count, destinations};

    plan_shape(plan, 1, 1, 0);
    sum_up(plan, &node, down);
    if (node.parent >= 0) {
        plan_next_program(plan);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(node.parent, DOWN)), down);
    }
}

/* The most blocks that one message carries: of the largest subtree below the top. */
static unsigned largest_message(int size)
{
    return (unsigned)range_split(size);
}

/* A message up holds the blocks of a whole subtree, in the order of its nodes. */
static void gather(struct plan *plan)
{
    struct node node = place(plan, plan->root);
    bool top = node.parent < 0;
    struct plan_operand up = plan_slot(node.parent, UP);
    int block = plan->rank;

    plan_shape(plan, 1, largest_message(plan->size), 0);
    if (!top)
        plan_acquire(plan, node.parent, UP);
    plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
              PLAN_LIST(top ? plan_output(plan, block, 0) : up));
    for (int i = 0; i < node.children; i++) {
        plan_wait(plan, node.child[i], UP, 0);
        for (int k = 0; k < node.child_extent[i]; k++) {
            block = (block + 1) % plan->size;
            plan_move(plan, 1, 0, PLAN_LIST(plan_slot(node.child[i], UP)),
                      PLAN_LIST(top ? plan_output(plan, block, 0) : up));
        }
        plan_release(plan, node.child[i], UP);
    }
    if (!top)
        plan_signal(plan, node.parent, UP, 0);
}

/* The mirror image: take my block out of the message, share the rest among the children. */
static void scatter(struct plan *plan)
{
    struct node node = place(plan, plan->root);
    bool top = node.parent < 0;
    struct plan_operand down = plan_slot(node.parent, DOWN);
    int block = plan->rank;

    plan_shape(plan, 1, largest_message(plan->size), 0);
    if (!top)
        plan_wait(plan, node.parent, DOWN, 0);
    plan_move(plan, 1, 0, PLAN_LIST(top ? plan_input(plan, block, 0) : down),
              PLAN_LIST(plan_output(plan, 0, 0)));
    for (int i = 0; i < node.children; i++) {
        plan_acquire(plan, node.child[i], DOWN);
        for (int k = 0; k < node.child_extent[i]; k++) {
            block = (block + 1) % plan->size;
            plan_move(plan, 1, 0, PLAN_LIST(top ? plan_input(plan, block, 0) : down),
                      PLAN_LIST(plan_slot(node.child[i], DOWN)));
        }
        plan_signal(plan, node.child[i], DOWN, 0);
    }
    if (!top)
        plan_release(plan, node.parent, DOWN);
}

enum { SUMS = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_IN_PLACE };

const struct algorithm binomial_algorithm = {
    .name = "binomial",
    .summary = "A tree in which every step doubles the number of ranks reached.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, SUMS, "2 ceil(log2 n) steps with the whole vector",
                                  WAY_TREE},
            [RONDO_REDUCE] = {reduce, SUMS,
                              "ceil(log2 n) steps with the whole vector, 1 more to a root that is "
                              "not rank 0",
                              WAY_TREE},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE,
                                 "ceil(log2 n) steps with the whole vector", WAY_TREE},
            [RONDO_GATHER] = {gather, PROMISE_IN_PLACE,
                              "ceil(log2 n) steps, each with twice as many blocks", WAY_TREE},
            [RONDO_SCATTER] = {scatter, PROMISE_IN_PLACE,
                               "ceil(log2 n) steps, each with half as many blocks", WAY_TREE},
        },
};
