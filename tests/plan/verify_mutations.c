/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify_mutations.c - ways to break one step of a plan; a mutant that means the same as the plan
 * is not made.
 */
#include "tests/plan/verify_mutations.h"

#include "plan/zcopy.h"
#include "plan/verify/verify.h"
#include "tests/plan/verify_forms.h"

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
        return step->flags & PLAN_SETTLED;
    for (int i = 0; i < step->sources + step->destinations; i++)
        if (sources[i].buffer == PLAN_SLOT)
            return false;
    for (int s = 0; s < step->sources; s++)
        for (int d = 0; d < step->destinations; d++)
            if (same_place(&sources[s], &sources[step->sources + d]))
                return false;
    return true;
}

/* Put copies of `count` steps in front of step `at`. */
static void insert(struct plan *plan, uint32_t at, const struct plan_step *steps, uint32_t count)
{
    struct plan_step *longer = malloc((plan->step_count + count) * sizeof(*longer));

    memcpy(longer, plan->steps, at * sizeof(*longer));
    memcpy(longer + at, steps, count * sizeof(*longer));
    memcpy(longer + at + count, plan->steps + at, (plan->step_count - at) * sizeof(*longer));
    free(plan->steps);
    plan->steps = longer;
    plan->step_room = plan->step_count += count;
    for (int i = 0; i < plan->programs; i++) {
        plan->program[i].begin += plan->program[i].begin >= at ? count : 0;
        plan->program[i].end += plan->program[i].end >= at ? count : 0;
    }
}

bool mutate_repeat(struct plan *plan, uint32_t step, int variant)
{
    if (variant > 0 || is_idempotent(plan, &plan->steps[step]))
        return false;
    insert(plan, step + 1, &plan->steps[step], 1);
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

bool mutate_channel(struct plan *plan, uint32_t step, int variant)
{
    struct plan_operand *operand = operand_at(plan, step, variant);

    if (operand && operand->buffer == PLAN_SLOT)
        operand->channel = (uint8_t)((operand->channel + 1) % PLAN_CHANNELS);
    else if (is_move(&plan->steps[step]) || variant > 0)
        return false;
    else
        plan->steps[step].channel = (uint8_t)((plan->steps[step].channel + 1) % PLAN_CHANNELS);
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

bool mutate_settled(struct plan *plan, uint32_t step, int variant)
{
    struct plan_step *at = &plan->steps[step];

    if (variant > 0 || at->verb != PLAN_WAIT || at->event != PLAN_CREDIT)
        return false;
    at->flags ^= PLAN_SETTLED;
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

/* ---- A place that is written while a message for it is expected ------------------------------ */

struct receives {
    const struct plan_step *wait[2], *copy[2];
};

static bool find_receives(const struct plan *plan, uint32_t wait, struct receives *ret_receives)
{
    const struct plan_step *at = &plan->steps[wait];
    uint32_t end = 0;

    for (int i = 0; i < plan->programs; i++)
        if (plan->program[i].begin <= wait && wait < plan->program[i].end)
            end = plan->program[i].end;
    for (int i = 0; i < 2; i++) {
        if (at == &plan->steps[end] || at->verb != PLAN_WAIT || at->event != PLAN_DATA)
            return false;
        ret_receives->wait[i] = at;
        ret_receives->copy[i] = zcopy_copy(plan, end, at);
        if (!ret_receives->copy[i])
            return false;
        at = zcopy_behind(plan, end, ret_receives->copy[i]);
    }
    return ret_receives->wait[0]->peer != ret_receives->wait[1]->peer &&
           zcopy_place(plan, ret_receives->copy[1]);
}

void receives_at(const struct plan *plan, uint32_t wait, int ret_senders[2])
{
    struct receives receives;
    bool found = find_receives(plan, wait, &receives);

    for (int i = 0; i < 2; i++)
        ret_senders[i] = found ? receives.wait[i]->peer : -1;
}

static bool is_message(const struct plan_step *step, enum plan_verb verb, int peer, int channel)
{
    return step->verb == verb && step->event == PLAN_DATA && step->peer == peer &&
           step->channel == channel;
}

/* The step of `sender` that signals the message for which `wait` waits. */
static uint32_t signal_of(const struct plan *plan, const struct plan_step *wait,
                          const struct plan *sender)
{
    uint32_t before = 0, at = 0;

    for (const struct plan_step *step = plan->steps; step < wait; step++)
        before += is_message(step, PLAN_WAIT, wait->peer, wait->channel);
    for (;; at++)
        if (is_message(&sender->steps[at], PLAN_SIGNAL, plan->rank, wait->channel) && !before--)
            return at;
}

bool mutate_writer(const struct plan *whole, uint32_t wait, const struct plan *sender,
                   struct plan **ret_whole, struct plan **ret_sender)
{
    enum { CHANNEL = PLAN_CHANNEL_P2P }; /* which collectives leave free */
    const struct plan_step told[2] = {
        {.verb = PLAN_WAIT, .event = PLAN_DATA, .channel = CHANNEL, .peer = whole->rank},
        {.verb = PLAN_SIGNAL, .event = PLAN_CREDIT, .channel = CHANNEL, .peer = whole->rank}};
    struct receives receives;
    const struct plan_operand *place;
    struct plan *plan;

    if (whole->programs == PLAN_PROGRAMS_MAX || !find_receives(whole, wait, &receives) ||
        !plan_input_blocks(whole->collective, whole->size, whole->rank, whole->root))
        return false;
    place = zcopy_place(whole, receives.copy[1]);
    *ret_whole = plan = forms_copy_plan(whole);
    plan_next_program(plan);
    plan_move(plan, receives.copy[1]->atoms, 0, PLAN_LIST(plan_input(plan, 0, (int)place->first)),
              PLAN_LIST(*place));
    plan_notify(plan, sender->rank, CHANNEL, 0);
    *ret_sender = forms_copy_plan(sender);
    insert(*ret_sender,
           signal_of(whole, receives.wait[receives.wait[1]->peer == sender->rank], sender), told,
           2);
    return true;
}
