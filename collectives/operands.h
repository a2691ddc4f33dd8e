/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operands.h - lists of operands as long as there are ranks, and who sits where in the circle.
 *
 * A list that could not be allocated marks its plan out_of_memory; adding to it is then harmless,
 * because no builder looks at it any more.
 */
#ifndef RONDO_COLLECTIVES_OPERANDS_H
#define RONDO_COLLECTIVES_OPERANDS_H

#include "plan/plan.h"

struct operands {
    struct plan_operand *items;
    int count, room;
};

/* Room for one operand of every rank. */
void operands_open(struct operands *operands, struct plan *plan);
void operands_close(struct operands *operands);
void operands_add(struct operands *operands, struct plan_operand operand);
/* The slots of all peers, beginning behind this rank, so that none is everybody's first. */
void operands_add_peers(struct operands *operands, const struct plan *plan, int channel);
/* One operand per rank in rank order: `own` at this rank's place, slots for the others. */
void operands_add_ranks(struct operands *operands, const struct plan *plan, int channel,
                        struct plan_operand own);
struct plan_list operands_list(const struct operands *operands);

/* The rank that sits `distance` to the right; a negative distance looks to the left. */
static inline int rank_at(const struct plan *plan, int distance)
{
    int rank = (plan->rank + distance) % plan->size;

    return rank < 0 ? rank + plan->size : rank;
}

#endif
