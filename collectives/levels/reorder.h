/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.h - an algorithm over ranks in the order of their groups. */
#ifndef RONDO_COLLECTIVES_REORDER_H
#define RONDO_COLLECTIVES_REORDER_H

#include "collectives/algorithm.h"

/*
 * Write the algorithm's form of plan->collective, one of all_reduce, reduce, broadcast, all_gather
 * and reduce_scatter, for ranks in the order of plan->groups. It has no order of sums to keep.
 */
void reorder_by_groups(struct plan *plan, const struct algorithm *algorithm);

#endif
