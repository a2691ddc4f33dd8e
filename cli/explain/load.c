/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c - what the ranks do in one call of so many elements, counted in their steps. */
#include "cli/explain/load.h"

#include "base/range.h"

/* Atoms are cut by the one remainder rule, so elements are whole. */
static double elements_of(const struct plan *plan, const struct plan_step *step, size_t count)
{
    const struct plan_operand *operands = plan->operands + step->operand;
    int all = step->sources + step->destinations;
    const struct plan_operand *at = operands;
    unsigned end;

    for (int i = 0; i < all && at->buffer == PLAN_SLOT; i++)
        at = &operands[i];
    end = at->first + step->atoms < plan->parts ? at->first + step->atoms : plan->parts;
    return (double)(range_start(count, 1, plan->parts, end) -
                    range_start(count, 1, plan->parts, at->first));
}

static struct load load_of(const struct plan *plan, size_t count)
{
    struct load load = {0};

    for (uint32_t s = 0; s < plan->step_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        double elements;

        if (step->verb != PLAN_COPY && step->verb != PLAN_REDUCE)
            continue;
        elements = elements_of(plan, step, count);
        for (int i = 0; i < step->destinations; i++)
            if (plan_destinations(plan, step)[i].buffer == PLAN_SLOT)
                load.sent += elements;
        if (step->verb == PLAN_COPY)
            load.copied += elements * step->destinations;
        else
            load.reduced += elements * step->sources;
    }
    return load;
}

struct load load_most(struct plan *const *plans, int plan_count, double count)
{
    struct load most = {0};

    for (int i = 0; i < plan_count; i++) {
        struct load load = {0};

        if (plans[i])
            load = load_of(plans[i], (size_t)count);
        most.sent = load.sent > most.sent ? load.sent : most.sent;
        most.copied = load.copied > most.copied ? load.copied : most.copied;
        most.reduced = load.reduced > most.reduced ? load.reduced : most.reduced;
    }
    return most;
}
