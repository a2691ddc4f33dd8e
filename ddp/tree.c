/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.c - the passes between two exchanges, added up as one balanced tree.
 *
 * A binary counter of partial sums: partial[l] holds the sum of 2^l passes where bit l of the
 * number of finished passes is set. A pass is added as one is added to a counter, with a sum where
 * there is a carry:
 *
 *     pass 0   p0 = g0
 *     pass 1   p1 = p0 + g1                     (g0 + g1)
 *     pass 2   p0 = g2
 *     pass 3   p2 = p1 + (p0 + g3)              ((g0 + g1) + (g2 + g3))
 *
 * and the last pass takes in all that is left, smallest first. The earlier passes are always on the
 * left. It is the tree that rondo.h promises over ranks, so if each rank has a power of two of
 * passes the tree over the ranks continues it. Cost: log2(passes), rounded up, more gradients
 * in memory, which are kept for the next exchange until open.c frees them.
 */
#include "ddp/core.h"
#include "ddp/number.h"

#include <stdlib.h>
#include <string.h>

rondo_result ddp_tree_add(rondo_ddp *ddp, struct ddp_tensor *parameter)
{
    void *gradient = ddp_gradient(ddp, parameter);
    size_t bytes = ddp_bytes(parameter);
    int level = 0, rest = ddp->passes;

    /* The last pass takes in every partial sum, another one only those that a carry reaches. */
    for (; ddp->exchange ? rest : rest & 1; rest >>= 1, level++)
        if (rest & 1 && parameter->partial[level]) /* or there was no memory for it */
            ddp_add(parameter->partial[level], gradient, parameter->count, parameter->type);
    if (ddp->exchange)
        return RONDO_OK;
    if (!parameter->partial[level])
        parameter->partial[level] = malloc(bytes + 1); /* never of 0 bytes, which may give NULL */
    if (!parameter->partial[level])
        return ddp_problem(ddp, RONDO_ERROR_MEMORY,
                           "Rank %d is out of memory for the sum of passes of '%s'.", ddp->rank,
                           parameter->name);
    memcpy(parameter->partial[level], gradient, bytes);
    memset(gradient, 0, bytes);
    return RONDO_OK;
}
