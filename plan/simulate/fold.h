/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fold.h - ranks that do the same at the same time are simulated once.
 *
 * A *symmetry* is a family of ways to move all ranks: on a circle, r -> r + s, or by bits, r -> r
 * xor s, each with all multiples s of a period. Where such a move turns the plan of each rank
 * into the plan of the rank that it is moved to, and each link into a link that is like it, then
 * whatever happens to a rank happens to its images at the same time: by induction over events, as
 * nothing in the model can tell them apart, and max-min fair rates are unique. So ranks 0 ..
 * period - 1 stand for all, and it is exact.
 *
 *     ring, 4 hosts of 2      0 -> 1 -> 2 -> 3 -> 4 -> ...     r -> r + 2 maps plans and hosts: two
 *                            '------' '------' '------'        kinds of rank
 *
 * Plans are compared as they are written, and none is kept. Over many ranks that would take longer
 * than anything else, so beyond COMPARED steps only some are: `compared` says how many.
 */
#ifndef RONDO_PLAN_SIMULATE_FOLD_H
#define RONDO_PLAN_SIMULATE_FOLD_H

#include "plan/plan.h"
#include "plan/simulate/machine.h"

/* This is who writes the plans: `read` lets the reader have the steps of one rank. *ret_shape has
 * parts and message_atoms, and is the caller's to close. */
struct simulate_plans {
    rondo_result (*read)(const struct simulate_plans *plans, int rank, struct plan_reader *reader,
                         struct plan **ret_shape);
    int ranks;
};

struct fold {
    int ranks, period; /* period = ranks: nothing is folded */
    bool by_bits;      /* r xor s instead of r + s */
    int compared;      /* ranks whose plans were compared with their images */
};

/* Fills in the symmetry with the fewest kinds of ranks that machine and plans have. */
rondo_result fold_find(const struct simulate_plans *plans, const struct machine *machine,
                       struct fold *ret_fold);

/* The rank that stands for this one. */
static inline int fold_kind(const struct fold *fold, int rank)
{
    return rank % fold->period;
}

/* Returns where a rank comes to if `by` is moved to its kind. */
static inline int fold_move(const struct fold *fold, int rank, int by)
{
    int shift = by - by % fold->period;
    int moved;

    if (fold->by_bits)
        return rank ^ shift;
    moved = rank - shift;
    return moved < 0 ? moved + fold->ranks : moved;
}

#endif
