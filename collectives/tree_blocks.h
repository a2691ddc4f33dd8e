/* SPDX-License-Identifier: BSD-3-Clause */
/* tree_blocks.h - the forms of "tree" in which every rank is the root of a tree of its own. */
#ifndef RONDO_COLLECTIVES_TREE_BLOCKS_H
#define RONDO_COLLECTIVES_TREE_BLOCKS_H

#include "collectives/algorithm.h"

void tree_all_gather(struct plan *plan);
void tree_reduce_scatter(struct plan *plan);

#endif
