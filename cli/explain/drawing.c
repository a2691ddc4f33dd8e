/* SPDX-License-Identifier: BSD-3-Clause */
/* drawing.c - a run of the plans against the clock of the cost model, for those who draw it. */
#include "cli/explain/drawing.h"

#include <string.h>

uint32_t drawing_items(const struct drawing *drawing)
{
    const struct verify_machine *machine = &drawing->record.machine;

    return machine->reduces ? machine->values.positions : machine->values.leaves;
}

bool drawing_owns(const struct drawing *drawing, int rank, uint32_t item)
{
    const struct verify_machine *machine = &drawing->record.machine;
    uint32_t positions = machine->values.positions, mine = 1;
    int member = machine->member_of[rank];

    if (member == VERIFY_NOBODY)
        return false;
    if (machine->collective != RONDO_BARRIER)
        mine = machine->members[member].input_blocks * machine->parts;
    if (machine->reduces)
        return item < mine;
    return item / positions == (uint32_t)rank && item % positions < mine;
}

bool drawing_gets(const struct drawing *drawing, int rank, uint32_t item)
{
    const struct verify_machine *machine = &drawing->record.machine;
    uint32_t from = item / machine->values.positions;
    uint32_t block = item % machine->values.positions / machine->parts;
    int root = drawing->subject->root;

    switch (machine->collective) {
    case RONDO_REDUCE:
    case RONDO_GATHER:
        return rank == root;
    case RONDO_REDUCE_SCATTER:
    case RONDO_ALL_TO_ALL:
        return block == (uint32_t)rank;
    case RONDO_SCATTER:
        return from == (uint32_t)root && block == (uint32_t)rank;
    case RONDO_BROADCAST:
        return from == (uint32_t)root;
    case RONDO_SEND:
    case RONDO_RECV:
        return rank == machine->ranks - 1 && from == 0;
    default:
        return true;
    }
}

bool drawing_exists(const struct drawing *drawing, uint32_t item)
{
    for (int r = 0; r < drawing->record.machine.ranks; r++)
        if (drawing_owns(drawing, r, item))
            return true;
    return false;
}

static const struct plan *plan_of(const struct drawing *drawing, int rank, int *ret_number)
{
    *ret_number = drawing->record.machine.member_of[rank];
    return drawing->record.machine.plans[*ret_number];
}

/* Finds when the sender began to fill the message, which is behind its wait for the slot. */
static double filling(const struct drawing *drawing, const struct explain_message *message)
{
    int number;
    const struct plan *plan = plan_of(drawing, message->from, &number);
    uint32_t step = message->sent;

    for (; step > 0; step--) {
        const struct plan_step *before = &plan->steps[step - 1];

        if (before->verb == PLAN_WAIT && before->event == PLAN_CREDIT &&
            before->peer == message->to && before->channel == message->channel)
            break;
    }
    return drawing->times.spans[number][step].start;
}

struct drawing_flight drawing_message(const struct drawing *drawing,
                                      const struct explain_message *message)
{
    struct drawing_flight flight = {.filled = filling(drawing, message)};
    int from, to;

    plan_of(drawing, message->from, &from);
    plan_of(drawing, message->to, &to);
    flight.arrived = drawing->times.spans[from][message->sent].end;
    flight.used = message->use ? drawing->times.spans[to][message->taken].end : flight.arrived;
    return flight;
}

double drawing_hold(const struct drawing *drawing, const struct explain_hold *hold)
{
    int by;

    plan_of(drawing, hold->by, &by);
    return drawing->times.spans[by][hold->step].end;
}

/* ---- Opening --------------------------------------------------------------------------------- */

rondo_result drawing_open(struct drawing *drawing, const struct subject *subject,
                          const struct explain_costs *costs)
{
    static const struct explain_style style = {0};
    struct explain_costs own = subject_costs(subject, costs);
    rondo_result result;

    memset(drawing, 0, sizeof(*drawing));
    drawing->subject = subject;
    result = explain_record_open(&drawing->record, subject->plans, subject->plan_count);
    if (!result)
        result = explain_times_open(subject->plans, subject->plan_count, &own, &drawing->times);
    drawing->page = (struct explain_page){
        .style = &style, .record = &drawing->record, .machine = &drawing->record.machine};
    return result;
}

void drawing_close(struct drawing *drawing)
{
    explain_times_close(&drawing->times);
    explain_record_close(&drawing->record);
}
