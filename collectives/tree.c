/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.c - two binary trees at once: logarithmic depth, and no rank carries more than twice a leaf.
 *
 * In one binary tree half of the ranks are leaves that only send. So cut the vector in halves and
 * give each its own tree, such that the inner nodes of one are leaves of the other. Position 0 is
 * the root, on top of both; the others sit in order, even positions inside, odd ones are leaves:
 *
 *     tree A, 8 ranks     0                 tree B: the same with the positions of
 *                          \                1..m mirrored (m even) or moved on by one (m odd),
 *                           4               so that the parity of every rank changes
 *                        /     \
 *                      2         6          node p with lowest set bit b: children p - b/2, p + b/2
 *                    /   \     /   \
 *                   1     3   5     7
 *
 * Up and down run as programs of their own, on a lane each, so that windows going up pass windows
 * going down. The root's last step of the way up is the first of the way down.
 * Invariant: a rank has two children in at most one of the trees, at most one child in the other.
 * Cost: 2 ceil(log2 n) steps; nobody sends or takes more than 2 vectors.
 */
#include "collectives/tree_blocks.h"

#include "collectives/cost.h"
#include "collectives/operands.h"

enum { TREES = 2, NOBODY = -1 };

/* Lanes: one per tree and direction. */
static int up(int tree)
{
    return 2 * tree;
}

static int down(int tree)
{
    return 2 * tree + 1;
}

/* Where the rank `v` places behind the root sits among positions 1..m of a tree, and back. */
static int position_of(int v, int m, int tree)
{
    if (v == 0 || tree == 0)
        return v;
    return m % 2 ? v % m + 1 : m + 1 - v;
}

static int rank_of(const struct plan *plan, int position, int tree)
{
    int m = plan->size - 1;
    int v = position;

    if (position && tree == 1)
        v = m % 2 ? (position + m - 2) % m + 1 : m + 1 - position;
    return (int)(((long long)plan->root + v) % plan->size);
}

struct node {
    int parent; /* rank, or NOBODY */
    int children, child[2];
};

/* The position above p > 0: the perfect tree's, or, where that is cut off at m, the next one up. */
static int position_above(int p, int m)
{
    int bit = p & -p;

    return !(p & 2 * bit) && bit <= m - p ? p + bit : p - bit;
}

/* The position below p on the right, where the next shorter
 * branch takes a place cut off; 0: none. */
static int position_right(int p, int m)
{
    int step = (p & -p) / 2;

    while (step > m - p)
        step /= 2;
    return step ? p + step : 0;
}

/* The position below the root: the largest power of two; 0: none. */
static int position_first(int m)
{
    int first = m > 0;

    while (first && first <= m / 2)
        first *= 2;
    return first;
}

static void add_child(struct node *node, const struct plan *plan, int position, int tree)
{
    if (position)
        node->child[node->children++] = rank_of(plan, position, tree);
}

/* My place in a tree. */
static struct node place(const struct plan *plan, int tree)
{
    int m = plan->size - 1; /* positions 1..m hang under position 0 */
    int p = position_of((plan->rank - plan->root + plan->size) % plan->size, m, tree);
    struct node node = {.parent = NOBODY};

    if (p == 0) {
        add_child(&node, plan, position_first(m), tree);
        return node;
    }
    node.parent = rank_of(plan, position_above(p, m), tree);
    if (p % 2 == 0) {
        add_child(&node, plan, p - (p & -p) / 2, tree);
        add_child(&node, plan, position_right(p, m), tree);
    }
    return node;
}

/* Sum of my subtree; tree t carries atom t. To the parent, or where the root wants it. */
static void sum_up(struct plan *plan, const struct node *node, int tree, struct plan_list result)
{
    struct plan_operand sources[3] = {plan_input(plan, 0, tree)};
    struct plan_list list = {1 + node->children, sources};

    for (int i = 0; i < node->children; i++)
        sources[i + 1] = plan_slot(node->child[i], up(tree));
    if (node->parent == NOBODY)
        plan_combine(plan, 1, PLAN_FINISH, list, result);
    else
        plan_combine(plan, 1, 0, list, PLAN_LIST(plan_slot(node->parent, up(tree))));
}

/* To my output and on to my children. */
static struct plan_list below(const struct plan *plan, const struct node *node, int tree,
                              struct plan_operand destinations[3])
{
    destinations[0] = plan_output(plan, 0, tree);
    for (int i = 0; i < node->children; i++)
        destinations[i + 1] = plan_slot(node->child[i], down(tree));
    return (struct plan_list){1 + node->children, destinations};
}

static void all_reduce(struct plan *plan)
{
    struct plan_operand destinations[3];

    plan_shape(plan, TREES, 1, 0);
    for (int tree = 0; tree < TREES; tree++) {
        struct node node = place(plan, tree);
        struct plan_list results = below(plan, &node, tree, destinations);

        if (tree)
            plan_next_program(plan);
        sum_up(plan, &node, tree, results);
        if (node.parent == NOBODY)
            continue;
        plan_next_program(plan);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(node.parent, down(tree))), results);
    }
}

static void reduce(struct plan *plan)
{
    plan_shape(plan, TREES, 1, 0);
    for (int tree = 0; tree < TREES; tree++) {
        struct node node = place(plan, tree);

        if (tree)
            plan_next_program(plan);
        sum_up(plan, &node, tree, PLAN_LIST(plan_output(plan, 0, tree)));
    }
}

static void broadcast(struct plan *plan)
{
    struct plan_operand destinations[3];

    plan_shape(plan, TREES, 1, 0);
    for (int tree = 0; tree < TREES; tree++) {
        struct node node = place(plan, tree);
        struct plan_operand source = plan_input(plan, 0, tree);

        if (tree)
            plan_next_program(plan);
        if (node.parent != NOBODY)
            source = plan_slot(node.parent, down(tree));
        plan_combine(plan, 1, 0, PLAN_LIST(source), below(plan, &node, tree, destinations));
    }
}

/* On each level two messages, one per tree. */
static double steps(int size)
{
    return cost_doublings(size) * cost_round(2);
}

/* What of the first window is behind it when it comes to the last level. */
static double first_window(int size, double bytes)
{
    return size > 2 ? (cost_doublings(size) - 1) * cost_window(bytes / 2) : 0;
}

/* With more than 3 ranks somebody has two children in one tree; the root has a child in both. */
static void cost_all_reduce(int size, double bytes, struct cost *ret_cost)
{
    double first = first_window(size, bytes);

    *ret_cost =
        (struct cost){2 * steps(size), 2 * bytes + 2 * first, size > 1 ? 2 * bytes + 3 * first : 0,
                      size > 2 ? 2 * bytes : (size > 1) * bytes};
}

static void cost_reduce(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){steps(size), bytes,
                              size > 1 ? 2 * bytes + 3 * first_window(size, bytes) : 0, bytes};
}

static void cost_broadcast(int size, double bytes, struct cost *ret_cost)
{
    *ret_cost = (struct cost){
        steps(size), size > 1 ? 1.5 * bytes + 2 * first_window(size, bytes) : bytes, 0, bytes};
}

const struct algorithm tree_algorithm = {
    .name = "tree",
    .summary = "Two binary trees, each for one half of the vector; inner nodes of one are leaves "
               "of the other.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE, cost_all_reduce,
                                  "2 ceil(log2 n) steps, half of the vector per tree, pipelined"},
            [RONDO_REDUCE] = {reduce, PROMISE_IN_PLACE, cost_reduce,
                              "ceil(log2 n) steps, half of the vector per tree, pipelined"},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE, cost_broadcast,
                                 "ceil(log2 n) steps, half of the vector per tree, pipelined"},
            [RONDO_ALL_GATHER] = {tree_all_gather, PROMISE_IN_PLACE, tree_cost_all_gather,
                                  "ceil(log2 n) rounds, n-1 blocks sent"},
            [RONDO_REDUCE_SCATTER] = {tree_reduce_scatter, PROMISE_IN_PLACE,
                                      tree_cost_reduce_scatter,
                                      "ceil(log2 n) rounds, n-1 blocks sent"},
        },
};
