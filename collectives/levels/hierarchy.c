/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy.c - the algorithms in two levels: groups of ranks that are near each other (the ranks
 * of a host, or of a NUMA node), and rails from group to group (grouping.h).
 *
 * Every form is put together from plans of other algorithms over these subsets (compose.h):
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
#include "collectives/levels/hierarchy.h"

extern const struct algorithm direct_algorithm, ring_algorithm, zero_copy_algorithm;

static const struct recipe near = {&direct_algorithm, &direct_algorithm, .flows = true};
static const struct recipe ring = {&direct_algorithm, &ring_algorithm, .reaches = false};
static const struct recipe reach = {&zero_copy_algorithm, &zero_copy_algorithm, .reaches = true};

/* First all of my group, then one of each group per rail. */
static void hierarchy_barrier(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    struct inner inside = levels_inside(&levels, RONDO_BARRIER, 0);

    plan_shape(plan, 1, 0, 0);
    compose(plan, &inside);
    for (int rail = levels.rail; rail < levels.end; rail++) {
        struct inner across = levels_across(&levels, RONDO_BARRIER, 1, rail);

        compose(plan, &across);
    }
}

enum {
    COPIES = PROMISE_IN_PLACE,
    BALANCED = PROMISE_BALANCED, /* where groups are aligned */
    ORDERED = PROMISE_RANK_ORDER /* where they are runs */
};

/* g groups of m ranks each. */
const struct algorithm hierarchy_algorithm = {
    .name = "hierarchy",
    .summary = "Two levels: inside of groups, then from group to group on as many rails as a "
               "group has ranks.",
    .levels = true,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {hierarchy_all_reduce, COPIES,
                                  "4 rounds, 2 of them across groups with 2(g-1)/g of 1/m of the "
                                  "vector from each rank",
                                  .recipe = &near, .runs = ORDERED, .aligned = BALANCED},
            [RONDO_REDUCE] = {hierarchy_reduce, COPIES,
                              "4 rounds, 2 of them across groups with 1/m of the vector from each "
                              "rank",
                              .recipe = &near, .runs = ORDERED, .aligned = BALANCED},
            [RONDO_BROADCAST] = {hierarchy_broadcast, COPIES,
                                 "3 rounds, 1 across groups with 1/m of the vector to each rank",
                                 .recipe = &near},
            [RONDO_ALL_GATHER] = {hierarchy_all_gather, COPIES,
                                  "2 rounds, 1 across groups with g-1 blocks from each rank",
                                  .recipe = &near},
            [RONDO_REDUCE_SCATTER] = {hierarchy_reduce_scatter, COPIES,
                                      "2 rounds, 1 across groups with g-1 blocks from each rank",
                                      .recipe = &near, .runs = ORDERED, .aligned = BALANCED},
            [RONDO_ALL_TO_ALL] = {hierarchy_all_to_all, COPIES,
                                  "m-1 exchanges of g blocks inside, g-1 of m blocks across "
                                  "groups",
                                  .recipe = &near},
            [RONDO_GATHER] = {hierarchy_gather, COPIES,
                              "2 rounds, 1 across groups with 1 block from each rank",
                              .recipe = &near},
            [RONDO_SCATTER] = {hierarchy_scatter, COPIES,
                               "2 rounds, 1 across groups with 1 block to each rank",
                               .recipe = &near},
            [RONDO_BARRIER] = {hierarchy_barrier, COPIES,
                               "ceil(log2 m) rounds inside, ceil(log2 g) across groups",
                               .recipe = &near},
        },
};

const struct algorithm hierarchy_ring_algorithm = {
    .name = "hierarchy_ring",
    .summary = "Two levels: inside of groups, then from group to group in rings, one per rail.",
    .levels = true,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {hierarchy_all_reduce, COPIES,
                                  "2 rounds inside, 2(g-1) steps across groups with 2(g-1)/g of "
                                  "1/m of the vector from each rank",
                                  .recipe = &ring},
            [RONDO_REDUCE] = {hierarchy_reduce, COPIES,
                              "2 rounds inside, g-1 steps across groups with 1/m of the vector "
                              "over each link, pipelined",
                              .recipe = &ring},
            [RONDO_BROADCAST] = {hierarchy_broadcast, COPIES,
                                 "2 rounds inside, g-1 steps across groups with 1/m of the vector "
                                 "over each link, pipelined",
                                 .recipe = &ring},
            [RONDO_ALL_GATHER] = {hierarchy_all_gather, COPIES,
                                  "1 round inside, g-1 steps across groups with g-1 blocks over "
                                  "each link",
                                  .recipe = &ring},
            [RONDO_REDUCE_SCATTER] = {hierarchy_reduce_scatter, COPIES,
                                      "1 round inside, g-1 steps across groups with g-1 blocks "
                                      "over each link",
                                      .recipe = &ring},
        },
};

const struct algorithm hierarchy_zero_copy_algorithm = {
    .name = "hierarchy_zero_copy",
    .summary = "Two levels of ranks that read each other's memory: near inputs first, then each "
               "group's sums once from group to group.",
    .levels = true,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {hierarchy_all_reduce, COPIES | PROMISE_PEER_MEMORY,
                                  "9 rounds of flags, 1/m of the group's vectors read inside, 1/m "
                                  "of the sums of all groups across",
                                  .recipe = &reach, .runs = ORDERED, .aligned = BALANCED},
        },
};
