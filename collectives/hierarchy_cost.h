/* SPDX-License-Identifier: BSD-3-Clause */
/* hierarchy_cost.h - what the forms in two levels cost: the sum of their inner plans. */
#ifndef RONDO_COLLECTIVES_HIERARCHY_COST_H
#define RONDO_COLLECTIVES_HIERARCHY_COST_H

#include "collectives/hierarchy.h"

/* Sizes of groups; what costs most is either in the largest or in the smallest one. */
struct extent {
    int size, groups, largest, smallest;
};
struct extent extent_of_groups(const struct grouping *groups);
struct extent extent_of_square(int size); /* as grouping_square() */

void hierarchy_cost(rondo_collective collective, const struct recipe *recipe,
                    const struct extent *extent, double bytes, struct cost *ret_cost,
                    struct cost *ret_across);

#endif
