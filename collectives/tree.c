/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.c - two binary trees at once: logarithmic depth, and no rank carries more than twice a leaf.
 *
 * In one binary tree half of the ranks are leaves that only send. So cut the vector in halves and
 * give each its own tree, such that the inner nodes of one are leaves of the other. Six ranks with
 * root 0:
 *
 *     tree A, first half     0                   tree B, second half     0
 *                             \                                           \
 *                              4                                           3
 *                            /   \                                       /   \
 *                          2       5                                   1       4
 *                        /   \                                       /   \
 *                       1     3                                     5     2
 *
 *     reduce      1 and 3 send their first halves to 2, which adds its own and sends the sum to 4,
 *                 which adds its own and that of 5, and sends the sum to 0; meanwhile the second
 *                 halves travel in B: 5 and 2 to 1, then 1 and 4 to 3, then 3 to 0
 *     broadcast   the same ways back
 *     all_reduce  up, and at the root at once down again
 *
 * Ranks 4 and 2 have children in A and are leaves of B; 3 and 1 the other way round; 5 is a leaf of
 * both, as there are more places for leaves than for inner nodes.
 *
 * A tree knows *positions*: 0 is the root, on top; 1..m are the others from left to right, so even
 * positions are inner nodes and odd ones are leaves. In A position p is the rank p places behind
 * the root: read the ranks of the drawing from left to right. In B the same tree stands on other
 * ranks, all moved on by one place (m odd, as here: 5 1 2 3 4) or in reverse (m even): that changes
 * odd into even, which is what makes inner nodes leaves.
 *
 * Up and down run as programs of their own, on a channel each, so that segments going up pass
 * segments going down. The root's last step of the way up is the first of the way down.
 * Invariant: a rank has two children in at most one of the trees, at most one child in the other.
 * Cost: 2 ceil(log2 n) steps; nobody sends or takes more than 2 vectors.
 */
#include "collectives/tree_blocks.h"

#include "collectives/operands.h"

enum { TREES = 2, NOBODY = -1 };

/* The channel of a tree's way up: 0 and 2. */
static int up(int tree)
{
    return 2 * tree;
}

/* The channel of a tree's way down: 1 and 3. */
static int down(int tree)
{
    return 2 * tree + 1;
}

/* The position of the rank `v` places behind the root: in B of six ranks 2, 3, 4, 5, 1 for 1..5. */
static int position_of(int v, int m, int tree)
{
    if (v == 0 || tree == 0)
        return v;
    return m % 2 ? v % m + 1 : m + 1 - v;
}

/* The rank at a position, the inverse: in B of six ranks 5, 1, 2, 3, 4 at 1..5. */
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

/*
 * The tree over positions. Let b be the lowest set bit of p, which says how high p stands: 1 for
 * the leaves 1, 3, 5; 2 for 2 (and 6); 4 for 4. Children are b/2 to the left and to the right, the
 * parent is b to one side: the side on which its own lowest bit is 2b. So 2 = 010 has 1 and 3 below
 * it, and of 0 and 4 = 100 the latter above it.
 *
 * Six ranks have no position 6, and where the perfect tree is cut off like this, two things change:
 * 5 finds no parent at 6, so takes the next one up, on its left: 4. And 4 finds no child at 6, so
 * takes the nearer one at 5: half the step again.
 */
static int position_above(int p, int m)
{
    int bit = p & -p;
    bool to_the_right = !(p & 2 * bit) && bit <= m - p;

    return to_the_right ? p + bit : p - bit;
}

/* The right child's position, 0: none. */
static int position_right(int p, int m)
{
    int step = (p & -p) / 2;

    while (step > m - p)
        step /= 2;
    return step ? p + step : 0;
}

/* The position below the root: the largest power of two, 4 of 1..5; 0: there is none. */
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

/* My place in a tree: rank 4 of six has parent 0 and children 2 and 5 in A, parent 3 in B. */
static struct node place(const struct plan *plan, int tree)
{
    int m = plan->size - 1;
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

const struct algorithm tree_algorithm = {
    .name = "tree",
    .summary = "Two binary trees, each for one half of the vector; inner nodes of one are leaves "
               "of the other.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE,
                                  "2 ceil(log2 n) steps, half of the vector per tree, pipelined",
                                  WAY_TREE},
            [RONDO_REDUCE] = {reduce, PROMISE_IN_PLACE,
                              "ceil(log2 n) steps, half of the vector per tree, pipelined",
                              WAY_TREE},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE,
                                 "ceil(log2 n) steps, half of the vector per tree, pipelined",
                                 WAY_TREE},
            [RONDO_ALL_GATHER] = {tree_all_gather, PROMISE_IN_PLACE,
                                  "ceil(log2 n) rounds, n-1 blocks sent"},
            [RONDO_REDUCE_SCATTER] = {tree_reduce_scatter, PROMISE_IN_PLACE,
                                      "ceil(log2 n) rounds, n-1 blocks sent"},
        },
    .any_order = true,
};
