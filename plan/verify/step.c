/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.c - copy and reduce on symbols.
 *
 * All operands of a step must be as long as each other for every count. Atoms of one segment have
 * lengths by index (the first ones take the remainder), so ranges must begin at the same atom
 * index, and a slot's piece keeps the indices of what was packed into it.
 */
#include "plan/verify/machine.h"

#include "base/collective.h"

#include <stdio.h>

struct move {
    struct verify_machine *machine;
    struct verify_actor *actor;
    int number; /* of the actor */
    const struct plan *plan;
    const struct plan_step *step;
    uint32_t first; /* atom index of all operands */
    bool has_first;
    struct verify_posting posting; /* .place NULL: none */
};

static const char *const kind_names[] = {"input", "output", "scratch", "slot"};

/* The members that a program may touch memory of: of a collective, one for each rank; of a message,
 * whose rank may be the same at both ends, the other one. */
static int find_owner(const struct move *move, int rank)
{
    const struct verify_machine *machine = move->machine;

    if (move->plan->collective != RONDO_RECV)
        return machine->member_of[rank];
    for (int i = 0; i < machine->size; i++) {
        const struct plan *plan = machine->plans[i];

        if (plan && plan->collective == RONDO_SEND && plan->rank == rank &&
            plan->root == move->plan->rank)
            return i;
    }
    return VERIFY_NOBODY;
}

static bool is_peers(const struct move *move, const struct plan_operand *operand)
{
    bool sent = move->plan->collective == RONDO_RECV && operand->buffer == PLAN_INPUT;

    return sent || operand->rank != move->plan->rank;
}

/* The member whose memory it is, if this program may touch it. */
static struct verify_member *owner_of(struct move *move, const struct plan_operand *operand)
{
    struct verify_machine *machine = move->machine;
    uint8_t *introduced = machine->introduced + (size_t)move->number * (size_t)machine->ranks;
    int member = VERIFY_NOBODY;

    if (!is_peers(move, operand))
        return &machine->members[move->actor->member];
    if (operand->rank >= 0 && operand->rank < machine->ranks)
        member = find_owner(move, operand->rank);
    if (member == VERIFY_NOBODY) {
        verify_fail(machine, move->actor, "there is no rank %d", operand->rank);
        return NULL;
    }
    if (operand->buffer == PLAN_SCRATCH) {
        verify_fail(machine, move->actor, "scratch of rank %d is out of reach", operand->rank);
        return NULL;
    }
    if (introduced[operand->rank] != verify_lap(machine, move->actor)) {
        verify_fail(machine, move->actor, "rank %d has not said where its buffers are",
                    operand->rank);
        return NULL;
    }
    machine->report->peer_memory = true;
    return &machine->members[member];
}

/* `rank`: where the range is, or comes from. */
static bool align(struct move *move, uint32_t first, int rank)
{
    if (move->has_first && move->first != first)
        return verify_fail(
            move->machine, move->actor,
            "wrong output: different parts of a vector meet, atom %u and atom %u of rank %d, which "
            "need not be of one length",
            move->first, first, rank);
    move->has_first = true;
    move->first = first;
    return true;
}

static bool find_cells(struct move *move, const struct plan_operand *operand,
                       struct verify_range *ret_range)
{
    struct verify_member *owner = owner_of(move, operand);
    uint32_t blocks, parts = move->machine->parts;
    struct verify_cell *base;

    if (!owner)
        return false;
    if (operand->buffer == PLAN_INPUT) {
        blocks = owner->input_blocks;
        base = owner->input[move->actor->segment];
    } else if (operand->buffer == PLAN_OUTPUT) {
        blocks = owner->output_blocks;
        base = owner->output[move->actor->segment];
    } else {
        blocks = move->plan->scratch_blocks;
        base = owner->scratch;
    }
    if (!blocks)
        return verify_fail(move->machine, move->actor, "rank %d has no %s", operand->rank,
                           kind_names[operand->buffer]);
    if (operand->block >= blocks || operand->first >= parts ||
        move->step->atoms > parts - operand->first)
        return verify_fail(move->machine, move->actor,
                           "%s block %u, atoms %u..%u, lies outside: "
                           "rank %d has %u blocks of %u atoms",
                           kind_names[operand->buffer], operand->block, operand->first,
                           operand->first + move->step->atoms - 1, operand->rank, blocks, parts);
    ret_range->kind = operand->buffer;
    ret_range->cells = base + (size_t)operand->block * parts + operand->first;
    return align(move, operand->first, operand->rank);
}

/* Turn the step's operands into machine->ranges. */
static bool find_ranges(struct move *move)
{
    struct verify_machine *machine = move->machine;
    const int32_t *links = machine->members[move->actor->member].operand_links;
    int sources = move->step->sources, count = sources + move->step->destinations;

    for (int i = 0; i < count; i++) {
        uint32_t index = move->step->operand + (uint32_t)i;
        struct verify_range *range = &machine->ranges[i];

        *range = (struct verify_range){.kind = RANGE_SLOT};
        if (move->plan->operands[index].buffer != PLAN_SLOT) {
            if (!find_cells(move, &move->plan->operands[index], range))
                return false;
        } else if (i < sources) {
            range->parcels = verify_take(machine, move->actor, links[index], move->step->atoms);
            if (!range->parcels ||
                !align(move, range->parcels->atom, move->plan->operands[index].rank))
                return false;
        } else {
            range->parcels = verify_append(machine, move->actor, links[index], move->step->atoms);
            if (!range->parcels)
                return false;
        }
    }
    return true;
}

static bool race(struct move *move, const struct plan_operand *operand, const char *what,
                 uint64_t other)
{
    char text[320];

    verify_describe_epoch(move->machine, other, text, sizeof(text));
    return verify_fail(move->machine, move->actor,
                       "race: nothing orders this %s of rank %d's %s "
                       "with %s",
                       what, operand->rank, kind_names[operand->buffer], text);
}

/* A network may have written here since the receive was posted. */
static bool write_before_wait(struct move *move, const struct plan_operand *operand,
                              struct verify_cell *cell)
{
    uint64_t other = verify_places(move->machine, cell, move->posting.known);
    char text[320];

    if (!other)
        return true;
    verify_describe_epoch(move->machine, other, text, sizeof(text));
    return verify_fail(move->machine, move->actor,
                       "race: a network may put this message into rank %d's output before the wait "
                       "for it ends, and nothing orders that with %s",
                       operand->rank, text);
}

/* The value of a source's atom, `index` atoms into the range. */
static bool read_source(struct move *move, int source, uint32_t index, verify_value *ret_value)
{
    struct verify_machine *machine = move->machine;
    const struct plan_operand *operand = &plan_sources(move->plan, move->step)[source];
    const struct verify_range *range = &machine->ranges[source];
    struct verify_cell *cell;
    uint64_t other;

    if (range->kind == RANGE_SLOT) {
        *ret_value = range->parcels[index].value;
        return true;
    }
    cell = &range->cells[index];
    other = verify_reads(machine, move->number, cell);
    if (other)
        return race(move, operand, "read", other);
    if (cell->value == VALUE_NONE ||
        (range->kind == RANGE_SCRATCH && cell->written_in != verify_lap(machine, move->actor)))
        return verify_fail(machine, move->actor,
                           "wrong output: it reads atom %u of %s block %u of rank %d, "
                           "which nobody has written in this segment",
                           move->first + index, kind_names[range->kind], operand->block,
                           operand->rank);
    if (machine->reduces && (range->kind == RANGE_INPUT) != ((cell->value & VALUE_RAW) != 0))
        return verify_fail(
            machine, move->actor, "%s",
            range->kind == RANGE_INPUT
                ? "wrong output: the input was overwritten before (it is the output, in place)"
                : "wrong output: an original input is read as if it were prepared");
    *ret_value = cell->value & ~(verify_value)VALUE_RAW;
    return true;
}

static bool write_destination(struct move *move, int at, uint32_t index, verify_value value)
{
    struct verify_machine *machine = move->machine;
    const struct plan_operand *operand = &plan_destinations(move->plan, move->step)[at];
    struct verify_range *range = &machine->ranges[move->step->sources + at];
    struct verify_cell *cell;
    uint64_t other;

    if (range->kind == RANGE_SLOT) {
        range->parcels[index] = (struct verify_parcel){value, move->first + index, index == 0};
        return true;
    }
    cell = &range->cells[index];
    if (!machine->reduces && machine->ranges[0].cells && cell == &machine->ranges[0].cells[index])
        return true; /* in place: the executor copies nothing onto itself */
    if (verify_written_now(machine, move->number, cell))
        return verify_fail(machine, move->actor, "two destinations are the same memory");
    if (operand == move->posting.place && !write_before_wait(move, operand, cell))
        return false;
    other = verify_writes(machine, move->number, cell);
    if (other)
        return race(move, operand, "write", other);
    cell->value = value;
    cell->written_in = verify_lap(machine, move->actor);
    return true;
}

static bool explain_error(struct move *move, enum value_error error, uint32_t index)
{
    struct verify_machine *machine = move->machine;
    uint32_t atom = move->first + index;
    char one[120], more[600] = "";
    struct value_node node;
    size_t length = 0;

    if (error == VALUE_NO_MEMORY)
        return verify_no_memory(machine);
    if (error == VALUE_IS_FINISHED)
        return verify_fail(machine, move->actor,
                           "wrong output: atom %u of a source was finished before", atom);
    for (int i = 0; i < move->step->sources && length < 400; i++) {
        verify_describe_ranks(machine, machine->sums[i], false, one, sizeof(one));
        value_describe(&machine->values, machine->sums[i], &node);
        length +=
            (size_t)snprintf(more + length, sizeof(more) - length, "%s%u:%u of %s", i ? " + " : "",
                             node.position / machine->parts, node.position % machine->parts, one);
    }
    return verify_fail(machine, move->actor,
                       "wrong output: %s in atom %u (sources as block:atom): %s",
                       error == VALUE_TWICE ? "a rank's share would count twice"
                                            : "it adds different elements of the inputs",
                       atom, more);
}

/* One atom: read all sources, combine, finish. */
static bool combine(struct move *move, uint32_t index, verify_value *ret_value)
{
    struct verify_machine *machine = move->machine;
    int count = move->step->sources;
    enum value_error error;
    struct value_node node;
    char missing[160];

    for (int i = 0; i < count; i++)
        if (!read_source(move, i, index, &machine->sums[i]))
            return false;
    error = value_reduce(&machine->values, machine->sums, count, move->step->flags & PLAN_BALANCED,
                         ret_value);
    if (error)
        return explain_error(move, error, index);
    if (!(move->step->flags & PLAN_FINISH))
        return true;
    if (*ret_value & VALUE_FINISHED)
        return explain_error(move, VALUE_IS_FINISHED, index);
    value_describe(&machine->values, *ret_value, &node);
    if (node.count != machine->ranks) {
        verify_describe_ranks(machine, *ret_value, true, missing, sizeof(missing));
        return verify_fail(machine, move->actor,
                           "wrong output: it finishes atom %u, which lacks the share of %s",
                           move->first + index, missing);
    }
    *ret_value |= count == 1 && machine->ranks > 1 ? VALUE_FINISHED | VALUE_LATE : VALUE_FINISHED;
    return true;
}

/* The ranks that tell a rank where their buffers are: all others, or who sends it a message. */
static int others_that_tell(const struct verify_machine *machine, const struct plan *plan)
{
    return collective_is_pair(plan->collective) ? 1 : machine->ranks - 1;
}

bool verify_move(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan *plan = machine->members[actor->member].plan;
    struct move move = {.machine = machine,
                        .actor = actor,
                        .number = (int)(actor - machine->actors),
                        .plan = plan,
                        .step = &plan->steps[actor->step]};

    if (plan->address_messages && actor->met < others_that_tell(machine, plan))
        return verify_fail(machine, actor,
                           "data moves before all ranks have said where their "
                           "buffers are, so it is too late for another algorithm");
    verify_is_posted(machine, actor, &move.posting);
    if (!find_ranges(&move))
        return false;
    for (uint32_t i = 0; i < move.step->atoms; i++) {
        verify_value value;

        if (!combine(&move, i, &value))
            return false;
        for (int d = 0; d < move.step->destinations; d++)
            if (!write_destination(&move, d, i, value))
                return false;
    }
    return !machine->out_of_memory || verify_no_memory(machine);
}
