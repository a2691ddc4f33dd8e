/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shape.c - what can be checked without running: one shape on all ranks, steps that make
 * sense, links.
 */
#include "plan/verify/machine.h"

#include "base/collective.h"

#include <stdlib.h>

static bool same_shape(struct verify_machine *machine, const struct plan *plan,
                       const struct plan *first)
{
    if (plan->parts != first->parts || plan->message_atoms != first->message_atoms ||
        plan->scratch_blocks != first->scratch_blocks)
        return verify_refuse(machine,
                             "rank %d's plan has another shape than rank %d's: %u parts, "
                             "%u atoms per message, %u blocks of scratch; %u, %u, %u",
                             plan->rank, first->rank, plan->parts, plan->message_atoms,
                             plan->scratch_blocks, first->parts, first->message_atoms,
                             first->scratch_blocks);
    if (plan->size != first->size ||
        (!collective_is_pair(plan->collective) &&
         (plan->collective != first->collective || plan->root != first->root)))
        return verify_refuse(machine, "rank %d's plan is for another call than rank %d's",
                             plan->rank, first->rank);
    return true;
}

/*
 * The executor counts down messages with addresses, and falls back after the last if memory is out
 * of reach.
 */
static bool check_introductions(struct verify_machine *machine, const struct plan *plan)
{
    uint32_t taken = 0, sent = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        bool signals = plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].flags & PLAN_ADDRESSES;

        taken += signals && plan->steps[i].event == PLAN_CREDIT;
        sent += signals && plan->steps[i].event == PLAN_DATA;
    }
    if (taken != plan->address_messages || sent != plan->address_signals)
        return verify_refuse(machine,
                             "rank %d's plan says it takes %u messages with addresses and sends "
                             "%u, its steps take %u and send %u",
                             plan->rank, plan->address_messages, plan->address_signals, taken,
                             sent);
    if (!taken != !sent && !collective_is_pair(plan->collective))
        return verify_refuse(machine,
                             "rank %d's plan %s messages with addresses, and %s none: it would not "
                             "know whether all ranks can be reached",
                             plan->rank, taken ? "takes" : "sends", taken ? "sends" : "takes");
    if ((taken || sent) && plan->message_atoms)
        return verify_refuse(machine,
                             "rank %d's plan mixes messages with addresses and messages "
                             "with data: where addresses go, message_atoms is 0",
                             plan->rank);
    return true;
}

static bool check_plan(struct verify_machine *machine, const struct plan *plan, int number)
{
    uint32_t at = 0;

    if (plan->out_of_memory)
        return verify_refuse(machine, "rank %d's plan is incomplete, memory ran out", number);
    if (plan->rank < 0 || plan->rank >= plan->size ||
        (!collective_is_pair(plan->collective) &&
         (plan->rank != number || plan->size != machine->size)))
        return verify_refuse(machine, "plan number %d of %d says it is rank %d's of %d", number,
                             machine->size, plan->rank, plan->size);
    if (!plan->parts || plan->parts > UINT16_MAX || plan->message_atoms > UINT16_MAX)
        return verify_refuse(machine, "rank %d's plan has %u parts and messages of %u atoms",
                             plan->rank, plan->parts, plan->message_atoms);
    if (plan->programs < 1 || plan->programs > PLAN_PROGRAMS_MAX)
        return verify_refuse(machine, "rank %d's plan has %d programs", plan->rank, plan->programs);
    for (int i = 0; i < plan->programs; i++) {
        if (plan->program[i].begin != at || plan->program[i].end < at ||
            plan->program[i].end > plan->step_count)
            return verify_refuse(machine, "rank %d's program %d does not follow the one before",
                                 plan->rank, i);
        at = plan->program[i].end;
    }
    if (at != plan->step_count)
        return verify_refuse(machine, "rank %d's last steps belong to no program", plan->rank);
    return check_introductions(machine, plan);
}

static bool check_operands(struct verify_machine *machine, const struct plan *plan,
                           const struct plan_step *step, struct verify_actor *actor)
{
    for (int i = 0; i < step->sources + step->destinations; i++) {
        const struct plan_operand *operand = &plan_sources(plan, step)[i];
        bool destination = i >= step->sources;

        if (operand->buffer > PLAN_SLOT)
            return verify_fail(machine, actor, "there is no buffer number %d", operand->buffer);
        if (destination && operand->buffer == PLAN_INPUT)
            return verify_fail(machine, actor, "an input is never written");
        if (operand->buffer == PLAN_SLOT &&
            (operand->rank < 0 || operand->rank >= plan->size || operand->channel >= PLAN_CHANNELS))
            return verify_fail(machine, actor, "there is no lane %d to rank %d", operand->channel,
                               operand->rank);
    }
    return true;
}

static bool check_move(struct verify_machine *machine, const struct plan *plan,
                       const struct plan_step *step, struct verify_actor *actor)
{
    if (step->sources < 1 || step->destinations < 1 || !step->atoms)
        return verify_fail(machine, actor, "it has no sources, destinations or atoms");
    if (step->operand > plan->operand_count ||
        (uint32_t)step->sources + (uint32_t)step->destinations >
            plan->operand_count - step->operand)
        return verify_fail(machine, actor, "its operands lie outside of the plan");
    if ((step->verb == PLAN_REDUCE) != (step->sources > 1))
        return verify_fail(machine, actor, "copy has one source, reduce has several");
    if (!machine->reduces && (step->verb == PLAN_REDUCE || (step->flags & PLAN_FINISH)))
        return verify_fail(machine, actor, "%s does not reduce",
                           rondo_collective_name(plan->collective));
    return check_operands(machine, plan, step, actor);
}

static bool check_step(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan *plan = machine->plans[actor->member];
    const struct plan_step *step = &plan->steps[actor->step];

    if (step->verb == PLAN_COPY || step->verb == PLAN_REDUCE)
        return check_move(machine, plan, step, actor);
    if (step->verb > PLAN_WAIT || step->event > PLAN_CREDIT)
        return verify_fail(machine, actor, "there is no such step");
    if (step->peer < 0 || step->peer >= plan->size || step->channel >= PLAN_CHANNELS)
        return verify_fail(machine, actor, "there is no lane %d to rank %d", step->channel,
                           step->peer);
    if ((step->flags & PLAN_ADDRESSES) && step->verb == PLAN_WAIT && step->event == PLAN_CREDIT)
        return verify_fail(machine, actor, "a free slot says nothing about addresses");
    if ((step->flags & PLAN_SETTLED) && (step->verb != PLAN_WAIT || step->event != PLAN_CREDIT))
        return verify_fail(machine, actor, "only a sender waits for what is given back");
    return true;
}

/* For every step of every program, with an actor that stands at it. */
static bool for_each_step(struct verify_machine *machine,
                          bool (*visit)(struct verify_machine *, struct verify_actor *))
{
    for (int i = 0; i < machine->actor_count; i++) {
        struct verify_actor *actor = &machine->actors[i];
        const struct plan_program *program =
            &machine->plans[actor->member]->program[actor->program];

        for (actor->step = program->begin; actor->step < program->end; actor->step++)
            if (!visit(machine, actor))
                return false;
        actor->step = program->begin;
    }
    return true;
}

static bool count_actors(struct verify_machine *machine)
{
    int count = 0;

    for (int i = 0; i < machine->size; i++)
        count += machine->plans[i] ? machine->plans[i]->programs : 0;
    machine->actors = calloc((size_t)count + 1, sizeof(*machine->actors));
    if (!machine->actors)
        return verify_no_memory(machine);
    for (int i = 0; i < machine->size; i++) {
        machine->members[i].actor = machine->actor_count;
        machine->members[i].programs = machine->plans[i] ? machine->plans[i]->programs : 0;
        for (int p = 0; p < machine->members[i].programs; p++)
            machine->actors[machine->actor_count++] =
                (struct verify_actor){.member = i, .program = p, .blocked = VERIFY_NO_LINK};
    }
    return true;
}

bool verify_shape(struct verify_machine *machine)
{
    const struct plan *first = NULL;

    for (int i = 0; i < machine->size; i++) {
        const struct plan *plan = machine->plans[i];

        if (!plan)
            continue;
        if (!first)
            first = plan;
        if (!check_plan(machine, plan, i) || !same_shape(machine, plan, first))
            return false;
    }
    if (!first)
        return verify_refuse(machine, "there are no plans");
    for (int i = 0; i < machine->size; i++)
        if (!machine->plans[i] && !collective_is_pair(first->collective))
            return verify_refuse(machine, "rank %d has no plan", i);
    machine->collective = first->collective;
    machine->parts = first->parts;
    machine->reduces = collective_reduces(first->collective);
    machine->ranks = first->size;
    machine->segments = 1;
    if (first->message_atoms && first->collective != RONDO_BARRIER) /* a barrier has no elements */
        machine->segments = VERIFY_SEGMENTS;
    return count_actors(machine) && for_each_step(machine, check_step);
}

static struct verify_link *link_between(struct verify_machine *machine, int from, int to,
                                        int channel)
{
    int32_t *index =
        &machine->link_index[((size_t)from * (size_t)machine->ranks + (size_t)to) * PLAN_CHANNELS +
                             (size_t)channel];

    if (!*index) {
        if (machine->link_count == machine->link_room) {
            int room = machine->link_room ? 2 * machine->link_room : 64;
            struct verify_link *moved = realloc(machine->links, (size_t)room * sizeof(*moved));

            if (!moved)
                return NULL;
            machine->links = moved;
            machine->link_room = room;
        }
        machine->links[machine->link_count] = (struct verify_link){.from = from,
                                                                   .to = to,
                                                                   .channel = channel,
                                                                   .sender = VERIFY_NOBODY,
                                                                   .receiver = VERIFY_NOBODY};
        *index = ++machine->link_count; /* 0 means none */
    }
    return &machine->links[*index - 1];
}

/* Note that the actor is at one end of a link; *ret_link is its number. */
static bool attach(struct verify_machine *machine, struct verify_actor *actor,
                   const struct plan_operand *slot, bool sends, int32_t *ret_link)
{
    int rank = machine->plans[actor->member]->rank, number = (int)(actor - machine->actors);
    struct verify_link *link = sends ? link_between(machine, rank, slot->rank, slot->channel)
                                     : link_between(machine, slot->rank, rank, slot->channel);
    int *end;

    if (!link)
        return verify_no_memory(machine);
    end = sends ? &link->sender : &link->receiver;
    if (*end != VERIFY_NOBODY && *end != number)
        return verify_fail(machine, actor, "program %d uses this end of lane %d too",
                           machine->actors[*end].program, slot->channel);
    *end = number;
    *ret_link = (int32_t)(link - machine->links);
    return true;
}

static bool connect_step(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct verify_member *member = &machine->members[actor->member];
    const struct plan *plan = machine->plans[actor->member];
    const struct plan_step *step = &plan->steps[actor->step];

    if (step->verb == PLAN_WAIT || step->verb == PLAN_SIGNAL) {
        struct plan_operand slot = {.channel = step->channel, .rank = step->peer};
        bool sends = (step->verb == PLAN_SIGNAL) == (step->event == PLAN_DATA);

        return attach(machine, actor, &slot, sends, &member->step_links[actor->step]);
    }
    for (uint32_t i = 0; i < (uint32_t)(step->sources + step->destinations); i++) {
        uint32_t index = step->operand + i;

        if (plan->operands[index].buffer == PLAN_SLOT &&
            !attach(machine, actor, &plan->operands[index], i >= (uint32_t)step->sources,
                    &member->operand_links[index]))
            return false;
    }
    return true;
}

bool verify_connect(struct verify_machine *machine)
{
    size_t ranks = (size_t)machine->ranks;

    machine->link_index = calloc(ranks * ranks * PLAN_CHANNELS, sizeof(*machine->link_index));
    if (!machine->link_index)
        return verify_no_memory(machine);
    return for_each_step(machine, connect_step);
}
