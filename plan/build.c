/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build.c - how algorithms write plans: steps and operands appended to two growing arrays.
 *
 * An allocation that fails makes the plan `out_of_memory` for good, so that algorithms need not
 * check every step; who asked for the plan checks once at the end.
 */
#include "plan/plan.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

rondo_result plan_open(rondo_collective collective, const char *algorithm, int size, int rank,
                       int root, struct plan **ret_plan)
{
    struct plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan of %s.",
                          rondo_collective_name(collective));
    plan->collective = collective;
    plan->algorithm = algorithm;
    plan->size = size;
    plan->rank = rank;
    plan->root = root;
    plan->parts = 1;
    plan->programs = 1;
    *ret_plan = plan;
    return RONDO_OK;
}

void plan_close(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->steps);
    free(plan->operands);
    free(plan->lines);
    free(plan);
}

void plan_shape(struct plan *plan, unsigned parts, unsigned message_atoms, unsigned scratch_blocks)
{
    plan->parts = parts;
    plan->message_atoms = message_atoms;
    plan->scratch_blocks = scratch_blocks;
}

void plan_next_program(struct plan *plan)
{
    struct plan_program *next = &plan->program[plan->programs++];

    next->begin = plan->step_count;
    next->end = plan->step_count;
}

/* Room for one more element of `size` bytes in *array; doubles, so that appending is cheap. */
static bool grow(void **array, size_t size, uint32_t needed, uint32_t *room)
{
    uint32_t wanted = *room ? *room : 16;
    void *moved;

    if (needed <= *room)
        return true;
    if (needed > UINT32_MAX / 2)
        return false;
    while (wanted < needed)
        wanted *= 2;
    moved = realloc(*array, size * wanted);
    if (!moved)
        return false;
    *array = moved;
    *room = wanted;
    return true;
}

static struct plan_step *append_step(struct plan *plan, enum plan_verb verb)
{
    struct plan_step *step;

    if (plan->out_of_memory || !grow((void **)&plan->steps, sizeof(*plan->steps),
                                     plan->step_count + 1, &plan->step_room)) {
        plan->out_of_memory = true;
        return NULL;
    }
    step = &plan->steps[plan->step_count++];
    memset(step, 0, sizeof(*step));
    step->verb = (uint8_t)verb;
    plan->program[plan->programs - 1].end = plan->step_count;
    return step;
}

/* A plan that is only read does not grow. */
static void hand_over(struct plan *plan, const struct plan_step *step)
{
    if (!plan->reader)
        return;
    plan->reader->read(plan->reader, plan, step);
    plan->step_count = plan->operand_count = 0;
}

static void count_addresses(struct plan *plan, const struct plan_step *step)
{
    if (step->verb == PLAN_SIGNAL && step->flags & PLAN_ADDRESSES)
        ++*(step->event == PLAN_DATA ? &plan->address_signals : &plan->address_messages);
}

static void append_event(struct plan *plan, enum plan_verb verb, enum plan_event event,
                         struct plan_operand slot, unsigned flags)
{
    struct plan_step *step = append_step(plan, verb);

    if (!step)
        return;
    step->event = (uint8_t)event;
    step->peer = slot.rank;
    step->channel = slot.channel;
    step->flags = (uint8_t)flags;
    count_addresses(plan, step);
    hand_over(plan, step);
}

void plan_acquire(struct plan *plan, int peer, int channel)
{
    append_event(plan, PLAN_WAIT, PLAN_CREDIT, plan_slot(peer, channel), 0);
}

void plan_signal(struct plan *plan, int peer, int channel, unsigned flags)
{
    append_event(plan, PLAN_SIGNAL, PLAN_DATA, plan_slot(peer, channel), flags);
}

void plan_wait(struct plan *plan, int peer, int channel, unsigned flags)
{
    append_event(plan, PLAN_WAIT, PLAN_DATA, plan_slot(peer, channel), flags);
}

void plan_release(struct plan *plan, int peer, int channel)
{
    append_event(plan, PLAN_SIGNAL, PLAN_CREDIT, plan_slot(peer, channel), 0);
}

void plan_settle(struct plan *plan, int peer, int channel)
{
    append_event(plan, PLAN_WAIT, PLAN_CREDIT, plan_slot(peer, channel), PLAN_SETTLED);
}

void plan_notify(struct plan *plan, int peer, int channel, unsigned flags)
{
    plan_acquire(plan, peer, channel);
    plan_signal(plan, peer, channel, flags);
}

void plan_await(struct plan *plan, int peer, int channel, unsigned flags)
{
    plan_wait(plan, peer, channel, flags);
    append_event(plan, PLAN_SIGNAL, PLAN_CREDIT, plan_slot(peer, channel), flags);
}

static bool append_operands(struct plan *plan, struct plan_list list)
{
    if (plan->out_of_memory ||
        !grow((void **)&plan->operands, sizeof(*plan->operands),
              plan->operand_count + (uint32_t)list.count, &plan->operand_room)) {
        plan->out_of_memory = true;
        return false;
    }
    memcpy(plan->operands + plan->operand_count, list.operands,
           sizeof(*list.operands) * (size_t)list.count);
    plan->operand_count += (uint32_t)list.count;
    return true;
}

void plan_move(struct plan *plan, unsigned atoms, unsigned flags, struct plan_list sources,
               struct plan_list destinations)
{
    uint32_t operand = plan->operand_count;
    struct plan_step *step;

    if (!append_operands(plan, sources) || !append_operands(plan, destinations))
        return;
    step = append_step(plan, sources.count > 1 ? PLAN_REDUCE : PLAN_COPY);
    if (!step)
        return;
    step->flags = (uint8_t)flags;
    step->atoms = atoms;
    step->sources = sources.count;
    step->destinations = destinations.count;
    step->operand = operand;
    hand_over(plan, step);
}

void plan_combine(struct plan *plan, unsigned atoms, unsigned flags, struct plan_list sources,
                  struct plan_list destinations)
{
    for (int i = 0; i < sources.count; i++)
        if (sources.operands[i].buffer == PLAN_SLOT)
            append_event(plan, PLAN_WAIT, PLAN_DATA, sources.operands[i], 0);
    for (int i = 0; i < destinations.count; i++)
        if (destinations.operands[i].buffer == PLAN_SLOT)
            append_event(plan, PLAN_WAIT, PLAN_CREDIT, destinations.operands[i], 0);
    plan_move(plan, atoms, flags, sources, destinations);
    for (int i = 0; i < destinations.count; i++)
        if (destinations.operands[i].buffer == PLAN_SLOT)
            append_event(plan, PLAN_SIGNAL, PLAN_DATA, destinations.operands[i], 0);
    for (int i = 0; i < sources.count; i++)
        if (sources.operands[i].buffer == PLAN_SLOT)
            append_event(plan, PLAN_SIGNAL, PLAN_CREDIT, sources.operands[i], 0);
}

void plan_append(struct plan *plan, const struct plan_step *step,
                 const struct plan_operand *operands)
{
    uint32_t operand = plan->operand_count;
    struct plan_step *own;

    if (operands &&
        !append_operands(plan, (struct plan_list){step->sources + step->destinations, operands}))
        return;
    own = append_step(plan, (enum plan_verb)step->verb);
    if (!own)
        return;
    *own = *step;
    own->operand = operands ? operand : 0;
    count_addresses(plan, own);
    hand_over(plan, own);
}

static struct plan_operand range(enum plan_buffer buffer, int rank, int block, int first)
{
    return (struct plan_operand){.buffer = (uint8_t)buffer,
                                 .rank = rank,
                                 .block = (uint32_t)block,
                                 .first = (uint32_t)first};
}

struct plan_operand plan_input(const struct plan *plan, int block, int first)
{
    return range(PLAN_INPUT, plan->rank, block, first);
}

struct plan_operand plan_output(const struct plan *plan, int block, int first)
{
    return range(PLAN_OUTPUT, plan->rank, block, first);
}

struct plan_operand plan_scratch(const struct plan *plan, int block, int first)
{
    return range(PLAN_SCRATCH, plan->rank, block, first);
}

struct plan_operand plan_slot(int peer, int channel)
{
    return (struct plan_operand){.buffer = PLAN_SLOT, .channel = (uint8_t)channel, .rank = peer};
}

struct plan_operand plan_slot_piece(int peer, int channel, int first)
{
    struct plan_operand slot = plan_slot(peer, channel);

    slot.first = (uint32_t)first;
    return slot;
}

struct plan_operand plan_peer_input(int rank, int block, int first)
{
    return range(PLAN_INPUT, rank, block, first);
}

struct plan_operand plan_peer_output(int rank, int block, int first)
{
    return range(PLAN_OUTPUT, rank, block, first);
}
