/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify_mutations.c - ways to break one step of a plan; a mutant that means the same as the plan
 * is not made.
 */
#include "tests/plan/verify_mutations.h"

#include "plan/verify/verify.h"

#include <stdlib.h>
#include <string.h>

static bool is_move(const struct plan_step *step)
{
    return step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;
}

/* Operand number `variant` of the step; NULL: it has none. */
static struct plan_operand *operand_at(struct plan *plan, uint32_t step, int variant)
{
    struct plan_step *at = &plan->steps[step];

    if (!is_move(at) || variant >= at->sources + at->destinations)
        return NULL;
    return &plan->operands[at->operand + (uint32_t)variant];
}

bool mutate_drop(struct plan *plan, uint32_t step, int variant)
{
    return variant == 0 && verify_drop_step(plan, step);
}

static bool same_place(const struct plan_operand *a, const struct plan_operand *b)
{
    return a->buffer == b->buffer && a->rank == b->rank && a->block == b->block &&
           a->first == b->first;
}

/* A move that neither uses slots nor reads what it writes may be repeated without harm. */
static bool is_idempotent(const struct plan *plan, const struct plan_step *step)
{
    const struct plan_operand *sources = plan_sources(plan, step);

    if (!is_move(step))
        return false;
    for (int i = 0; i < step->sources + step->destinations; i++)
        if (sources[i].buffer == PLAN_SLOT)
            return false;
    for (int s = 0; s < step->sources; s++)
        for (int d = 0; d < step->destinations; d++)
            if (same_place(&sources[s], &sources[step->sources + d]))
                return false;
    return true;
}

bool mutate_repeat(struct plan *plan, uint32_t step, int variant)
{
    struct plan_step *longer;

    if (variant > 0 || is_idempotent(plan, &plan->steps[step]))
        return false;
    longer = malloc((plan->step_count + 1) * sizeof(*longer));
    memcpy(longer, plan->steps, (step + 1) * sizeof(*longer));
    memcpy(longer + step + 1, plan->steps + step, (plan->step_count - step) * sizeof(*longer));
    free(plan->steps);
    plan->steps = longer;
    plan->step_room = ++plan->step_count;
    for (int i = 0; i < plan->programs; i++) {
        plan->program[i].begin += plan->program[i].begin > step;
        plan->program[i].end += plan->program[i].end > step;
    }
    return true;
}

bool mutate_shorten(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || !is_move(&plan->steps[step]))
        return false;
    plan->steps[step].atoms--;
    return true;
}

bool mutate_atom(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (!operand || operand->buffer == PLAN_SLOT)
        return false;
    operand->first = (operand->first + 1) % (plan->parts + 1);
    return true;
}

bool mutate_block(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (!operand || operand->buffer == PLAN_SLOT)
        return false;
    operand->block++;
    return true;
}

bool mutate_peer(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (operand)
        operand->rank = (operand->rank + 1) % plan->size;
    else if (is_move(&plan->steps[step]) || variant > 0)
        return false;
    else
        plan->steps[step].peer = (plan->steps[step].peer + 1) % plan->size;
    return true;
}

bool mutate_lane(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (operand && operand->buffer == PLAN_SLOT)
        operand->lane = (uint8_t)((operand->lane + 1) % PLAN_LANES);
    else if (is_move(&plan->steps[step]) || variant > 0)
        return false;
    else
        plan->steps[step].lane = (uint8_t)((plan->steps[step].lane + 1) % PLAN_LANES);
    return true;
}

bool mutate_event(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || is_move(&plan->steps[step]))
        return false;
    plan->steps[step].event = plan->steps[step].event == PLAN_DATA ? PLAN_CREDIT : PLAN_DATA;
    return true;
}

bool mutate_finish(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || !is_move(&plan->steps[step]))
        return false;
    plan->steps[step].flags ^= PLAN_FINISH;
    return true;
}

bool mutate_addresses(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || is_move(&plan->steps[step]))
        return false;
    plan->steps[step].flags ^= PLAN_ADDRESSES;
    return true;
}

bool mutate_lose_source(struct plan *plan, uint32_t step, int variant)
{
    struct plan_step *at = &plan->steps[step];
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (!operand || variant >= at->sources || at->sources < 2)
        return false;
    memmove(operand, operand + 1,
            (size_t)(at->sources + at->destinations - variant - 1) * sizeof(*operand));
    at->sources--;
    at->verb = at->sources > 1 ? PLAN_REDUCE : PLAN_COPY;
    return true;
}

bool mutate_lose_destination(struct plan *plan, uint32_t step, int variant)
{
    struct plan_step *at = &plan->steps[step];
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (!operand || variant < at->sources || at->destinations < 2)
        return false;
    memmove(operand, operand + 1,
            (size_t)(at->sources + at->destinations - variant - 1) * sizeof(*operand));
    at->destinations--;
    return true;
}

bool mutate_input(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (!operand || operand->buffer != PLAN_INPUT)
        return false;
    operand->buffer = PLAN_OUTPUT;
    return true;
}

bool mutate_swap_sources(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);
    struct plan_operand first;

    if (!operand || variant + 1 >= plan->steps[step].sources)
        return false;
    first = operand[0];
    operand[0] = operand[1];
    operand[1] = first;
    return true;
}

bool mutate_association(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || plan->steps[step].verb != PLAN_REDUCE || plan->steps[step].sources < 4)
        return false;
    plan->steps[step].flags ^= PLAN_BALANCED;
    return true;
}
