/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder.c - the same algorithm over ranks in another order: near ones side by side.
 *
 * A ring over ranks that were dealt to hosts in turn leaves its host with every step; the ring over
 * the same ranks host by host leaves each host once. Trees have short ways inside of runs, too:
 *
 *     hosts {0, 2, 4} and {1, 3, 5}     0 1 2 3 4 5 crosses 6 times, 0 2 4 1 3 5 twice
 *
 * It is a composition (compose.h) with one inner plan, over all ranks.
 */
#include "collectives/levels/reorder.h"

#include "collectives/levels/compose.h"

static int place_of(const int *order, int rank)
{
    int place = 0;

    while (order[place] != rank)
        place++;
    return place;
}

/* Blocks that belong to ranks are where these ranks' blocks are; a vector is where it is. */
static void name_blocks(struct plan *plan, struct places *places, enum plan_buffer buffer,
                        int blocks, const int *order)
{
    bool by_rank = blocks == plan->size; /* with one rank that is the same */

    for (int i = 0; i < plan->size && (by_rank || i < 1); i++) {
        places_next(plan, places);
        places_add(plan, places, (struct place){buffer, by_rank ? order[i] : 0, 0, 1});
    }
}

/* One block of every rank, each the only one of its buffer. */
static void name_own(struct plan *plan, struct places *places, enum plan_buffer buffer)
{
    for (int i = 0; i < plan->size; i++) {
        places_next(plan, places);
        places_add(plan, places, (struct place){buffer, 0, 0, 1});
    }
}

static void take_shape(struct plan *plan, const struct inner *inner)
{
    struct plan *from = NULL;

    if (algorithm_plan(inner->algorithm, inner->collective, inner->size, inner->rank, inner->root,
                       &from)) {
        plan->out_of_memory = true;
        return;
    }
    plan_shape(plan, from->parts, from->message_atoms, from->scratch_blocks);
    plan_close(from);
}

void reorder(struct plan *plan, const struct algorithm *algorithm, const int *order)
{
    struct inner inner = {.algorithm = algorithm,
                          .collective = plan->collective,
                          .size = plan->size,
                          .rank = place_of(order, plan->rank),
                          .root = place_of(order, plan->root),
                          .ranks = order,
                          .finish = true,
                          .side_by_side = true};
    int size = plan->size;

    take_shape(plan, &inner);
    if (plan->collective == RONDO_ALL_GATHER)
        name_own(plan, &inner.input, PLAN_INPUT);
    else
        name_blocks(plan, &inner.input, PLAN_INPUT,
                    plan->collective == RONDO_REDUCE_SCATTER ? size : 1, order);
    if (plan->collective == RONDO_REDUCE_SCATTER)
        name_own(plan, &inner.output, PLAN_OUTPUT);
    else
        name_blocks(plan, &inner.output, PLAN_OUTPUT,
                    plan->collective == RONDO_ALL_GATHER ? size : 1, order);
    compose(plan, &inner);
}
