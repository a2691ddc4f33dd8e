/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tree.c - the shape of the double binary tree, read off the plans of a broadcast. */
#include "ranks.h"

#include <criterion/criterion.h>

#include <string.h>

enum { SIZES = 130 };

static struct ranks ranks;
static int parents[2][SIZES], children[2][SIZES];

/* Finds who hangs under whom: program t of a rank is its place in tree t. */
static void read_trees(int size, int root)
{
    struct subject subject = {algorithm_find("tree"), RONDO_BROADCAST, NULL};

    memset(children, 0, sizeof(children));
    cr_assert(ranks_open(&ranks, &subject, size, root));
    for (int rank = 0; rank < size; rank++) {
        const struct plan *plan = ranks.plans[rank];

        cr_assert_eq(plan->programs, 2);
        for (int tree = 0; tree < 2; tree++) {
            parents[tree][rank] = -1;
            for (uint32_t i = plan->program[tree].begin; i < plan->program[tree].end; i++) {
                if (plan->steps[i].verb == PLAN_WAIT && plan->steps[i].event == PLAN_DATA)
                    parents[tree][rank] = plan->steps[i].peer;
                if (plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].event == PLAN_DATA)
                    children[tree][rank]++;
            }
        }
    }
    ranks_close(&ranks);
}

static int depth(int tree, int rank, int size)
{
    int steps = 0;

    while (parents[tree][rank] >= 0 && steps <= size) {
        rank = parents[tree][rank];
        steps++;
    }
    return steps;
}

Test(tree, an_inner_node_of_one_tree_is_a_leaf_of_the_other)
{
    for (int size = 2; size < SIZES; size++) {
        int root = size / 2;

        read_trees(size, root);
        for (int rank = 0; rank < size; rank++) {
            int a = children[0][rank], b = children[1][rank];

            if (rank == root)
                cr_expect(a == 1 && b == 1, "the root of %d has %d and %d children", size, a, b);
            else
                cr_expect(a <= 2 && b <= 2 && (!a || !b), "rank %d of %d has %d and %d children",
                          rank, size, a, b);
        }
    }
}

/* ceil(log2(size)) */
static int levels_of(int size)
{
    int levels = 0;

    while ((size - 1) >> levels)
        levels++;
    return levels;
}

Test(tree, both_trees_are_as_deep_as_the_formula_says)
{
    for (int size = 1; size < SIZES; size++) {
        read_trees(size, 0);
        for (int tree = 0; tree < 2; tree++) {
            int deepest = 0;

            for (int rank = 0; rank < size; rank++)
                deepest = depth(tree, rank, size) > deepest ? depth(tree, rank, size) : deepest;
            cr_expect_eq(deepest, levels_of(size), "tree %d of %d ranks is %d deep", tree, size,
                         deepest);
        }
    }
}
