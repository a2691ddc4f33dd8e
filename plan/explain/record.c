/* SPDX-License-Identifier: BSD-3-Clause */
/* record.c - watches a symbolic run and keeps what a reader wants to see. */
#include "plan/explain/record.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

static void append(struct explain_record *record, struct explain_list *list, const void *item,
                   size_t size)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        void *moved = realloc(list->items, room * size);

        if (!moved) {
            record->out_of_memory = true;
            return;
        }
        list->items = moved;
        list->room = room;
    }
    memcpy((char *)list->items + list->count++ * size, item, size);
}

static void note_message(struct explain_record *record, const struct verify_actor *actor)
{
    const struct verify_machine *machine = &record->machine;
    int number = machine->members[actor->member].step_links[actor->step];
    const struct verify_link *link = &machine->links[number];
    const struct verify_slot *slot = &link->slot[(link->sent - 1) % (uint32_t)machine->slots];
    struct explain_message message = {.level = slot->level,
                                      .from = link->from,
                                      .to = link->to,
                                      .channel = link->channel,
                                      .link = number,
                                      .number = link->sent - 1,
                                      .sent = actor->step,
                                      .first = record->values.count,
                                      .count = slot->length,
                                      .flags = slot->flags};

    if (link->from == link->to)
        return; /* the programs of one rank: nothing travels */
    for (uint32_t i = 0; i < slot->length; i++)
        append(record, &record->values, &slot->parcels[i].value, sizeof(verify_value));
    append(record, &record->messages, &message, sizeof(message));
    if (slot->level > record->levels)
        record->levels = slot->level;
}

/* The receiver of a message makes something of it. */
static void note_use(struct explain_record *record, int link, uint32_t step, uint8_t use)
{
    struct explain_message *messages = record->messages.items;
    uint32_t number = record->machine.links[link].received;

    for (size_t i = record->messages.count; i-- > 0;)
        if (messages[i].link == link && messages[i].number == number) {
            messages[i].use |= use;
            messages[i].taken = step;
            return;
        }
}

static void note_holds(struct explain_record *record, const struct verify_actor *actor,
                       const struct verify_range *range, const struct plan_operand *operand,
                       uint32_t atoms)
{
    const struct plan *plan = record->machine.plans[actor->member];
    struct explain_hold hold = {.level = actor->level,
                                .rank = range->cells ? operand->rank : plan->rank,
                                .by = plan->rank,
                                .step = actor->step,
                                .kept = range->cells};

    for (uint32_t i = 0; i < atoms; i++) {
        hold.value = range->cells ? range->cells[i].value : range->parcels[i].value;
        append(record, &record->holds, &hold, sizeof(hold));
    }
}

static void note_move(struct explain_record *record, const struct verify_actor *actor,
                      const struct plan_step *step)
{
    const struct verify_machine *machine = &record->machine;
    const struct plan *plan = machine->plans[actor->member];
    uint8_t use = step->verb == PLAN_REDUCE ? USE_ADDED : 0;
    bool reaches_out = false;

    for (int i = 0; i < step->sources + step->destinations; i++) {
        const struct plan_operand *operand = &plan_sources(plan, step)[i];

        reaches_out |= operand->buffer != PLAN_SLOT && operand->rank != plan->rank;
        if (i < step->sources)
            continue;
        use |= operand->buffer == PLAN_SLOT ? USE_PASSED : USE_KEPT;
        note_holds(record, actor, &machine->ranges[i], operand, step->atoms);
    }
    for (int i = 0; i < step->sources; i++)
        if (plan_sources(plan, step)[i].buffer == PLAN_SLOT)
            note_use(record,
                     machine->members[actor->member].operand_links[step->operand + (uint32_t)i],
                     actor->step, use);
    if (reaches_out) {
        struct explain_access access = {actor->level, plan->rank, actor->step};

        append(record, &record->accesses, &access, sizeof(access));
    }
}

/* A barrier moves knowledge only: whose start is before what this rank does now? */
static void note_arrivals(struct explain_record *record, const struct verify_actor *actor)
{
    const struct verify_machine *machine = &record->machine;
    const uint32_t *clock = verify_clock(machine, (int)(actor - machine->actors));

    for (int i = 0; i < machine->size; i++)
        if (clock[machine->members[i].actor]) {
            struct explain_hold hold = {
                .level = actor->level,
                .rank = machine->plans[actor->member]->rank,
                .by = machine->plans[actor->member]->rank,
                .step = actor->step,
                .kept = true,
                .value = value_leaf(&machine->values, machine->plans[i]->rank, 0)};

            append(record, &record->holds, &hold, sizeof(hold));
        }
}

static void stepped(void *context, const struct verify_machine *machine,
                    const struct verify_actor *actor, const struct plan_step *step)
{
    struct explain_record *record = context;

    if (step->verb == PLAN_COPY || step->verb == PLAN_REDUCE)
        note_move(record, actor, step);
    else if (step->verb == PLAN_SIGNAL && step->event == PLAN_DATA)
        note_message(record, actor);
    else if (machine->collective == RONDO_BARRIER)
        note_arrivals(record, actor);
}

static int in_reading_order(const void *left, const void *right)
{
    const struct explain_message *a = left, *b = right;

    if (a->level != b->level)
        return a->level - b->level;
    if (a->from != b->from)
        return a->from - b->from;
    if (a->to != b->to)
        return a->to - b->to;
    return a->channel != b->channel ? a->channel - b->channel : (int)a->number - (int)b->number;
}

static int by_rank(const void *left, const void *right)
{
    const struct explain_access *a = left, *b = right;

    if (a->level != b->level)
        return a->level - b->level;
    return a->rank != b->rank ? a->rank - b->rank : (int)a->step - (int)b->step;
}

rondo_result explain_record_open(struct explain_record *record, struct plan *const *plans, int size)
{
    struct verify_observer observer = {.context = record, .stepped = stepped};
    bool good;

    *record = (struct explain_record){0};
    good = verify_machine_open(&record->machine, plans, size, NULL, &record->report);
    record->machine.calls = 1;
    record->machine.segments = 1;
    record->machine.observer = &observer;
    good = good && verify_machine_run(&record->machine);
    record->machine.observer = NULL;
    if (record->out_of_memory || record->machine.out_of_memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an explanation of %d ranks.",
                          size);
    if (!good)
        return rondo_fail(RONDO_ERROR_INTERNAL, "This plan is wrong: %s.", record->report.failure);
    if (record->messages.count)
        qsort(record->messages.items, record->messages.count, sizeof(struct explain_message),
              in_reading_order);
    if (record->accesses.count)
        qsort(record->accesses.items, record->accesses.count, sizeof(struct explain_access),
              by_rank);
    return RONDO_OK;
}

void explain_record_close(struct explain_record *record)
{
    verify_machine_close(&record->machine);
    free(record->messages.items);
    free(record->values.items);
    free(record->holds.items);
    free(record->accesses.items);
}
