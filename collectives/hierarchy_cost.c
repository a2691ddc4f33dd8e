/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy_cost.c - costs of forms in two levels, put together as their plans are.
 *
 * A copy that an inner plan makes for itself is left out when it would be onto itself (compose.h);
 * it has a destination less then, which costs half of its length less.
 */
#include "collectives/hierarchy_cost.h"

#include "collectives/cost.h"

#include <math.h>

/* The cost in one group. */
struct sum {
    struct cost cost, across; /* of both levels; of the one between groups */
    const struct recipe *recipe;
    int size, members, groups;
    double share; /* of the vector, or of all blocks, that a rank of this group handles */
    double blocks;
};

struct extent extent_of_groups(const struct grouping *groups)
{
    struct extent extent = {.size = groups->size,
                            .groups = groups->groups,
                            .largest = groups->rails,
                            .smallest = groups->rails};

    for (int g = 0; g < groups->groups; g++)
        if (grouping_members(groups, g) < extent.smallest)
            extent.smallest = grouping_members(groups, g);
    return extent;
}

struct extent extent_of_square(int size)
{
    struct extent extent = {.size = size, .largest = 1};

    while ((long long)extent.largest * extent.largest < size)
        extent.largest *= 2;
    if (extent.largest > size)
        extent.largest = size;
    extent.groups = (size + extent.largest - 1) / extent.largest;
    extent.smallest = size - (extent.groups - 1) * extent.largest;
    return extent;
}

static void add(struct cost *sum, const struct cost *cost)
{
    sum->steps += cost->steps;
    sum->copied += cost->copied;
    sum->reduced += cost->reduced;
    sum->sent += cost->sent;
}

/* `bytes` of a block; `itself`: a block that is not copied, as it is where it belongs. */
static void inside(struct sum *sum, rondo_collective collective, double bytes, double itself)
{
    struct cost cost;

    if (sum->members == 1 && sum->groups > 1 && !sum->recipe->reaches)
        return;
    sum->recipe->inside->forms[collective].cost(sum->members, bytes, &cost);
    if (sum->members > 1 || sum->recipe->reaches)
        cost.copied -= sum->recipe->reaches ? 2 * itself : itself; /* a copy of its own there */
    add(&sum->cost, &cost);
}

static void across(struct sum *sum, rondo_collective collective, double bytes, double itself)
{
    struct cost cost;

    if (sum->groups == 1)
        return;
    sum->recipe->across->forms[collective].cost(sum->groups, bytes, &cost);
    cost.copied -= sum->recipe->reaches ? 2 * itself : itself;
    add(&sum->cost, &cost);
    add(&sum->across, &cost);
}

/* Collectives of one vector. */
static void add_slices(struct sum *sum, rondo_collective collective, double bytes)
{
    double slice = bytes * sum->share, atom = slice / sum->groups;

    if (sum->recipe->reaches)
        sum->cost.steps += cost_round(sum->size - 1); /* of addresses */
    switch (collective) {
    case RONDO_ALL_REDUCE:
        inside(sum, RONDO_REDUCE_SCATTER, slice, 0);
        if (sum->recipe->flows) {
            across(sum, RONDO_ALL_REDUCE, slice, 0);
        } else {
            across(sum, RONDO_REDUCE_SCATTER, atom, 0);
            across(sum, RONDO_ALL_GATHER, atom, atom / 2);
        }
        inside(sum, RONDO_ALL_GATHER, slice, slice / 2);
        break;
    case RONDO_REDUCE:
        inside(sum, RONDO_REDUCE_SCATTER, slice, 0);
        across(sum, RONDO_REDUCE, slice, 0);
        inside(sum, RONDO_GATHER, slice, slice);
        break;
    default:
        inside(sum, RONDO_SCATTER, slice, 0);
        across(sum, RONDO_BROADCAST, slice, sum->members > 1 ? slice / 2 : 0);
        inside(sum, RONDO_ALL_GATHER, slice, slice / 2);
        break;
    }
}

/* Collectives of blocks. */
static void add_blocks(struct sum *sum, rondo_collective collective, double bytes)
{
    double handled = bytes * sum->blocks, of_group = handled / sum->groups;

    switch (collective) {
    case RONDO_ALL_GATHER:
        across(sum, RONDO_ALL_GATHER, of_group, 0);
        inside(sum, RONDO_ALL_GATHER, handled, sum->groups > 1 ? handled / 2 : 0);
        break;
    case RONDO_REDUCE_SCATTER:
        inside(sum, RONDO_REDUCE_SCATTER, handled, 0);
        across(sum, RONDO_REDUCE_SCATTER, of_group, 0);
        break;
    case RONDO_GATHER:
    case RONDO_SCATTER:
        across(sum, collective, of_group, 0);
        inside(sum, collective, handled, 0);
        break;
    case RONDO_ALL_TO_ALL:
        inside(sum, RONDO_ALL_TO_ALL, handled, 0);
        across(sum, RONDO_ALL_TO_ALL, of_group * sum->members, of_group * sum->members);
        break;
    default:
        inside(sum, RONDO_BARRIER, 0, 0);
        across(sum, RONDO_BARRIER, 0, 0);
        break;
    }
}

/* In the groups of one size. */
static void in_group(struct sum *sum, rondo_collective collective, const struct extent *extent,
                     double bytes)
{
    int rails = (extent->largest + sum->members - 1) / sum->members; /* that a rank serves */

    sum->size = extent->size;
    sum->groups = extent->groups;
    sum->share = (double)rails / extent->largest;
    sum->blocks = extent->size * sum->share;
    if (collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
        collective == RONDO_BROADCAST)
        add_slices(sum, collective, bytes);
    else
        add_blocks(sum, collective, bytes);
    sum->across.sent *= sum->members;
}

static void take_larger(struct cost *cost, const struct cost *other)
{
    cost->steps = fmax(cost->steps, other->steps);
    cost->copied = fmax(cost->copied, other->copied);
    cost->reduced = fmax(cost->reduced, other->reduced);
    cost->sent = fmax(cost->sent, other->sent);
}

void hierarchy_cost(rondo_collective collective, const struct recipe *recipe,
                    const struct extent *extent, double bytes, struct cost *ret_cost,
                    struct cost *ret_across)
{
    struct sum large = {.recipe = recipe, .members = extent->largest};
    struct sum small = {.recipe = recipe, .members = extent->smallest};

    in_group(&large, collective, extent, bytes);
    if (extent->smallest < extent->largest) {
        in_group(&small, collective, extent, bytes);
        take_larger(&large.cost, &small.cost);
        take_larger(&large.across, &small.across);
    }
    *ret_cost = large.cost;
    *ret_across = large.across;
}
