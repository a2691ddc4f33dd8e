/* SPDX-License-Identifier: BSD-3-Clause */
/* operands.c - lists of operands, one per rank. */
#include "collectives/operands.h"

#include <stdlib.h>

void operands_open(struct operands *operands, struct plan *plan)
{
    operands->count = 0;
    operands->room = plan->size;
    operands->items = calloc((size_t)plan->size, sizeof(*operands->items));
    if (!operands->items) {
        operands->room = 0;
        plan->out_of_memory = true;
    }
}

void operands_close(struct operands *operands)
{
    free(operands->items);
}

void operands_add(struct operands *operands, struct plan_operand operand)
{
    if (operands->count < operands->room)
        operands->items[operands->count++] = operand;
}

void operands_add_peers(struct operands *operands, const struct plan *plan, int channel)
{
    for (int distance = 1; distance < plan->size; distance++)
        operands_add(operands, plan_slot(rank_at(plan, distance), channel));
}

void operands_add_ranks(struct operands *operands, const struct plan *plan, int channel,
                        struct plan_operand own)
{
    for (int rank = 0; rank < plan->size; rank++)
        operands_add(operands, rank == plan->rank ? own : plan_slot(rank, channel));
}

struct plan_list operands_list(const struct operands *operands)
{
    return (struct plan_list){operands->count, operands->items};
}
