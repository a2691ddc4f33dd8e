/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tiles.h - the general way to reduce: any number of sources, scaling, finishing, user functions.
 */
#ifndef RONDO_KERNELS_TILES_H
#define RONDO_KERNELS_TILES_H

#include "kernels/table.h"

void tiles_reduce(const struct kernel_table *table, const struct kernel_op *op,
                  const struct kernel_call *call);

#endif
