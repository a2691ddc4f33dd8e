/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posted.c - where receives are posted, so that a network writes to the output by itself (zcopy.h).
 *
 * A receive is posted when its program is at the wait for it, or at an earlier one from which it
 * does nothing but take other messages. From then on, as soon as the message is sent, its bytes may
 * come to the output, until the copy that is behind the wait. So that copy writes with what its
 * program knew where the receive was posted and what the sender knew; what the wait and others
 * before it tell comes too late. Every other access is ordered before one of the two, or after the
 * copy. Clocks are noted at the waits where receives are posted: the earliest one of each.
 */
#include "plan/zcopy.h"
#include "plan/verify/machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- Where receives are posted --------------------------------------------------------------- */

struct receive {
    const struct plan_step *wait, *copy;
};

/* Receives of a program that follow each other without anything else between them. */
struct chain {
    const struct plan *plan;
    struct receive *receives;
    uint32_t count;
    int32_t notes; /* clocks that later receives need; besides, each wait notes one for its own */
};

static bool overlap(const struct plan *plan, const struct plan_step *one,
                    const struct plan_step *other)
{
    const struct plan_operand *a = zcopy_place(plan, one), *b = zcopy_place(plan, other);

    return a && b && a->block == b->block && a->first < b->first + other->atoms &&
           b->first < a->first + one->atoms;
}

/* The earliest wait at which the last receive is posted: behind one of the same
 * link, as one is expected at a time, and behind one that writes to the same place. */
static uint32_t posted_at(const struct chain *chain)
{
    uint32_t last = chain->count - 1, at = last;
    const struct receive *receives = chain->receives;

    while (at > 0 &&
           (receives[at - 1].wait->peer != receives[last].wait->peer ||
            receives[at - 1].wait->channel != receives[last].wait->channel) &&
           !overlap(chain->plan, receives[at - 1].copy, receives[last].copy))
        at--;
    return at;
}

/* Append a receive. */
static void append(struct verify_member *member, struct chain *chain, const struct plan_step *wait,
                   const struct plan_step *copy)
{
    const struct plan_step *steps = chain->plan->steps;
    uint32_t at;

    chain->receives[chain->count++] = (struct receive){wait, copy};
    member->posted[wait - steps] = 0;
    if (!zcopy_place(chain->plan, copy))
        return;
    at = posted_at(chain);
    member->posted[copy - steps] = 0;
    if (at == chain->count - 1)
        return;
    at = (uint32_t)(chain->receives[at].wait - steps);
    if (!member->posted[at])
        member->posted[at] = ++chain->notes;
    member->posted[copy - steps] = member->posted[at];
    if (chain->notes > member->notes)
        member->notes = chain->notes;
}

static void post_program(struct verify_member *member, const struct plan_program *program,
                         struct chain *chain)
{
    const struct plan *plan = member->plan;
    const struct plan_step *next = NULL;

    for (uint32_t i = program->begin; i < program->end; i++) {
        const struct plan_step *wait = &plan->steps[i], *copy = NULL;

        if (wait->verb == PLAN_WAIT && wait->event == PLAN_DATA)
            copy = zcopy_copy(plan, program->end, wait);
        if (!copy)
            continue;
        if (wait != next)
            chain->count = 0, chain->notes = 0;
        append(member, chain, wait, copy);
        next = zcopy_behind(plan, program->end, copy);
    }
}

static bool post_member(struct verify_machine *machine, struct verify_member *member)
{
    const struct plan *plan = member->plan;
    size_t steps = plan ? plan->step_count : 0;
    struct chain chain = {.plan = plan};

    if (!steps)
        return true;
    member->posted = malloc(steps * sizeof(*member->posted));
    chain.receives = malloc(steps * sizeof(*chain.receives));
    if (!member->posted || !chain.receives) {
        free(chain.receives);
        return verify_no_memory(machine);
    }
    memset(member->posted, -1, steps * sizeof(*member->posted));
    for (int i = 0; i < plan->programs; i++)
        post_program(member, &plan->program[i], &chain);
    free(chain.receives);
    return true;
}

bool verify_post(struct verify_machine *machine)
{
    size_t actors = (size_t)machine->actor_count, clocks = 0;

    for (int i = 0; i < machine->size; i++) {
        struct verify_member *member = &machine->members[i];

        if (!post_member(machine, member))
            return false;
        member->first_note = clocks;
        clocks += (size_t)member->programs * ((size_t)member->notes + 1);
    }
    machine->notes = malloc(clocks * actors * sizeof(*machine->notes) + 1);
    return machine->notes || verify_no_memory(machine);
}

/* The clock that a program noted, by the number that `posted` has for a step. */
static uint32_t *noted(const struct verify_machine *machine, const struct verify_actor *actor,
                       int32_t number)
{
    const struct verify_member *member = &machine->members[actor->member];
    size_t at = member->first_note + (size_t)actor->program * ((size_t)member->notes + 1);

    return machine->notes + (at + (size_t)number) * (size_t)machine->actor_count;
}

void verify_note(const struct verify_machine *machine, const struct verify_actor *actor)
{
    int32_t number = machine->members[actor->member].posted[actor->step];
    const uint32_t *clock = verify_clock(machine, (int)(actor - machine->actors));
    size_t bytes = (size_t)machine->actor_count * sizeof(*clock);

    if (number >= 0)
        memcpy(noted(machine, actor, 0), clock, bytes);
    if (number > 0)
        memcpy(noted(machine, actor, number), clock, bytes);
}

bool verify_is_posted(const struct verify_machine *machine, const struct verify_actor *actor,
                      struct verify_posting *ret_posting)
{
    const struct verify_member *member = &machine->members[actor->member];
    const struct plan_step *step = &member->plan->steps[actor->step];
    int32_t number = member->posted[actor->step];
    const struct verify_link *link;

    if (number < 0)
        return false;
    link = &machine->links[member->operand_links[step->operand]];
    ret_posting->place = zcopy_place(member->plan, step);
    ret_posting->known[0] = noted(machine, actor, number);
    ret_posting->known[1] = link->slot[link->received % (uint32_t)machine->slots].sent_clock;
    return true;
}
