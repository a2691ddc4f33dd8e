/* SPDX-License-Identifier: BSD-3-Clause */
/* address.c - how long the buffers of a call are. */
#include "comm/state/address.h"

struct address_lengths address_lengths(const struct execution *x)
{
    const struct plan *plan = x->plan;
    size_t block = x->shape.count * x->shape.element;
    size_t inputs = (size_t)plan_input_blocks(plan->collective, plan->size, plan->rank, plan->root);
    size_t outputs =
        (size_t)plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root);

    return (struct address_lengths){inputs * block, outputs * block};
}
