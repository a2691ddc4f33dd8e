/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.h - an algorithm over ranks in the order in which they sit in the hardware. */
#ifndef RONDO_COLLECTIVES_REORDER_H
#define RONDO_COLLECTIVES_REORDER_H

#include "collectives/algorithm.h"

/*
 * Writes the algorithm's form of plan->collective, one of all_reduce, reduce, broadcast, all_gather
 * and reduce_scatter, for ranks in that order. It has no order of sums to keep.
 */
void reorder(struct plan *plan, const struct algorithm *algorithm, const int *order);

#endif
