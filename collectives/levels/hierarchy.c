/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy.c - the algorithms in two levels: groups of ranks that are near each other (the ranks
 * of a host, or of a NUMA node), and rails from group to group (grouping.h).
 *
 * Every form is put together from plans of other algorithms over these parties (compose.h):
 * hierarchy_slices.c has the collectives of one vector, hierarchy_blocks.c those of blocks. Here is
 * which plans: inside of groups `direct`, where memory is near and every rank reaches every other;
 * across groups `direct` too, for few groups and short ways, or `ring`, which has two neighbours
 * however many groups there are. Where memory can be reached, between NUMA nodes, `zero_copy` on
 * both levels.
 *
 * Order of sums: inside first, then across, each as a balanced tree if both are `direct`. Where
 * groups are runs of ranks that is rank order; where they have a power of two of ranks each it is
 * the balanced tree over all ranks, since that splits at powers of two.
 */
#include "collectives/hierarchy.h"

#include "collectives/hierarchy_cost.h"

extern const struct algorithm direct_algorithm, ring_algorithm, zero_copy_algorithm;

static const struct recipe near = {&direct_algorithm, &direct_algorithm, .flows = true};
static const struct recipe ring = {&direct_algorithm, &ring_algorithm, .reaches = false};
static const struct recipe reach = {&zero_copy_algorithm, &zero_copy_algorithm, .reaches = true};

/* First all of my group, then one of each group per rail. */
void hierarchy_barrier(struct plan *plan, const struct recipe *recipe)
{
    struct levels levels = levels_of(plan, recipe);
    struct inner inside = levels_inside(&levels, RONDO_BARRIER, 0);

    plan_shape(plan, 1, 0, 0);
    compose(plan, &inside);
    for (int rail = levels.rail; rail < levels.end; rail++) {
        struct inner across = levels_across(&levels, RONDO_BARRIER, 1, rail);

        compose(plan, &across);
    }
}

/* A form is a writer and two costs, each with the recipe filled in. */
#define FORM(recipe, form, COLLECTIVE)                                                  \
    static void recipe##_##form(struct plan *plan)                                      \
    {                                                                                   \
        hierarchy_##form(plan, &recipe);                                                \
    }                                                                                   \
    static void recipe##_cost_##form(int size, double bytes, struct cost *ret_cost)     \
    {                                                                                   \
        struct extent extent = extent_of_square(size);                                  \
        struct cost across;                                                             \
                                                                                        \
        hierarchy_cost(COLLECTIVE, &recipe, &extent, bytes, ret_cost, &across);         \
    }                                                                                   \
    static void recipe##_cost_in_##form(const struct grouping *groups, double bytes,    \
                                        struct cost *ret_cost, struct cost *ret_across) \
    {                                                                                   \
        struct extent extent = extent_of_groups(groups);                                \
                                                                                        \
        hierarchy_cost(COLLECTIVE, &recipe, &extent, bytes, ret_cost, ret_across);      \
    }

FORM(near, all_reduce, RONDO_ALL_REDUCE)
FORM(near, reduce, RONDO_REDUCE)
FORM(near, broadcast, RONDO_BROADCAST)
FORM(near, all_gather, RONDO_ALL_GATHER)
FORM(near, reduce_scatter, RONDO_REDUCE_SCATTER)
FORM(near, all_to_all, RONDO_ALL_TO_ALL)
FORM(near, gather, RONDO_GATHER)
FORM(near, scatter, RONDO_SCATTER)
FORM(near, barrier, RONDO_BARRIER)
FORM(ring, all_reduce, RONDO_ALL_REDUCE)
FORM(ring, reduce, RONDO_REDUCE)
FORM(ring, broadcast, RONDO_BROADCAST)
FORM(ring, all_gather, RONDO_ALL_GATHER)
FORM(ring, reduce_scatter, RONDO_REDUCE_SCATTER)
FORM(reach, all_reduce, RONDO_ALL_REDUCE)

enum {
    COPIES = PROMISE_IN_PLACE,
    BALANCED = PROMISE_BALANCED, /* where groups are aligned */
    ORDERED = PROMISE_RANK_ORDER /* where they are runs */
};

static const struct level_form near_levels[RONDO_COLLECTIVES] = {
    [RONDO_ALL_REDUCE] = {ORDERED, BALANCED, near_cost_in_all_reduce},
    [RONDO_REDUCE] = {ORDERED, BALANCED, near_cost_in_reduce},
    [RONDO_BROADCAST] = {0, 0, near_cost_in_broadcast},
    [RONDO_ALL_GATHER] = {0, 0, near_cost_in_all_gather},
    [RONDO_REDUCE_SCATTER] = {ORDERED, BALANCED, near_cost_in_reduce_scatter},
    [RONDO_ALL_TO_ALL] = {0, 0, near_cost_in_all_to_all},
    [RONDO_GATHER] = {0, 0, near_cost_in_gather},
    [RONDO_SCATTER] = {0, 0, near_cost_in_scatter},
    [RONDO_BARRIER] = {0, 0, near_cost_in_barrier},
};

static const struct level_form ring_levels[RONDO_COLLECTIVES] = {
    [RONDO_ALL_REDUCE] = {0, 0, ring_cost_in_all_reduce},
    [RONDO_REDUCE] = {0, 0, ring_cost_in_reduce},
    [RONDO_BROADCAST] = {0, 0, ring_cost_in_broadcast},
    [RONDO_ALL_GATHER] = {0, 0, ring_cost_in_all_gather},
    [RONDO_REDUCE_SCATTER] = {0, 0, ring_cost_in_reduce_scatter},
};

/* g groups of m ranks each. */
const struct algorithm hierarchy_algorithm = {
    .name = "hierarchy",
    .summary = "Two levels: inside of groups, then from group to group on as many rails as a "
               "group has ranks.",
    .levels = near_levels,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {near_all_reduce, COPIES, near_cost_all_reduce,
                                  "4 rounds, 2 of them across groups with 2(g-1)/g of 1/m of the "
                                  "vector from each rank"},
            [RONDO_REDUCE] = {near_reduce, COPIES, near_cost_reduce,
                              "4 rounds, 2 of them across groups with 1/m of the vector from each "
                              "rank"},
            [RONDO_BROADCAST] = {near_broadcast, COPIES, near_cost_broadcast,
                                 "3 rounds, 1 across groups with 1/m of the vector to each rank"},
            [RONDO_ALL_GATHER] = {near_all_gather, COPIES, near_cost_all_gather,
                                  "2 rounds, 1 across groups with g-1 blocks from each rank"},
            [RONDO_REDUCE_SCATTER] = {near_reduce_scatter, COPIES, near_cost_reduce_scatter,
                                      "2 rounds, 1 across groups with g-1 blocks from each rank"},
            [RONDO_ALL_TO_ALL] = {near_all_to_all, COPIES, near_cost_all_to_all,
                                  "m-1 exchanges of g blocks inside, g-1 of m blocks across "
                                  "groups"},
            [RONDO_GATHER] = {near_gather, COPIES, near_cost_gather,
                              "2 rounds, 1 across groups with 1 block from each rank"},
            [RONDO_SCATTER] = {near_scatter, COPIES, near_cost_scatter,
                               "2 rounds, 1 across groups with 1 block to each rank"},
            [RONDO_BARRIER] = {near_barrier, COPIES, near_cost_barrier,
                               "ceil(log2 m) rounds inside, ceil(log2 g) across groups"},
        },
};

const struct algorithm hierarchy_ring_algorithm = {
    .name = "hierarchy_ring",
    .summary = "Two levels: inside of groups, then from group to group in rings, one per rail.",
    .levels = ring_levels,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {ring_all_reduce, COPIES, ring_cost_all_reduce,
                                  "2 rounds inside, 2(g-1) steps across groups with 2(g-1)/g of "
                                  "1/m of the vector from each rank"},
            [RONDO_REDUCE] = {ring_reduce, COPIES, ring_cost_reduce,
                              "2 rounds inside, g-1 steps across groups with 1/m of the vector "
                              "over each link, pipelined"},
            [RONDO_BROADCAST] = {ring_broadcast, COPIES, ring_cost_broadcast,
                                 "2 rounds inside, g-1 steps across groups with 1/m of the vector "
                                 "over each link, pipelined"},
            [RONDO_ALL_GATHER] = {ring_all_gather, COPIES, ring_cost_all_gather,
                                  "1 round inside, g-1 steps across groups with g-1 blocks over "
                                  "each link"},
            [RONDO_REDUCE_SCATTER] = {ring_reduce_scatter, COPIES, ring_cost_reduce_scatter,
                                      "1 round inside, g-1 steps across groups with g-1 blocks "
                                      "over each link"},
        },
};

static const struct level_form reach_levels[RONDO_COLLECTIVES] = {
    [RONDO_ALL_REDUCE] = {ORDERED, BALANCED, reach_cost_in_all_reduce},
};

const struct algorithm hierarchy_zero_copy_algorithm = {
    .name = "hierarchy_zero_copy",
    .summary = "Two levels of ranks that read each other's memory: near inputs first, then each "
               "group's sums once from group to group.",
    .levels = reach_levels,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {reach_all_reduce, COPIES | PROMISE_PEER_MEMORY,
                                  reach_cost_all_reduce,
                                  "9 rounds of flags, 1/m of the group's vectors read inside, 1/m "
                                  "of the sums of all groups across"},
        },
};
