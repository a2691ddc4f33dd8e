/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user.c - what a rank's user does around a call: write the input, check the result, reuse
 * all buffers.
 *
 * All of a member's actors start after its user's writes and are joined before the user reads the
 * result, both as part of the member's first actor.
 */
#include "plan/verify/machine.h"

#include <stdio.h>
#include <string.h>

/* The user overwrites one buffer; input values are symbols of their own, output is undefined. */
static bool overwrite(struct verify_machine *machine, const struct verify_member *member,
                      struct verify_cell *cells, uint32_t count, bool input)
{
    verify_value raw = machine->reduces ? VALUE_RAW : 0;
    char text[320];

    for (uint32_t i = 0; i < count; i++) {
        uint64_t other = verify_writes(machine, member->actor, &cells[i]);

        if (other) {
            verify_describe_epoch(machine, other, text, sizeof(text));
            return verify_refuse(machine,
                                 "race: rank %d's user reuses block %u of its %s when its "
                                 "call has ended, but nothing orders that with %s",
                                 member->plan->rank, i / machine->parts, input ? "input" : "output",
                                 text);
        }
        cells[i].value =
            input ? value_leaf(&machine->values, member->plan->rank, i) | raw : VALUE_NONE;
    }
    return true;
}

bool verify_user_start(struct verify_machine *machine, int number)
{
    struct verify_member *member = &machine->members[number];
    const uint32_t *user = verify_clock(machine, member->actor);
    int first = member->actor;

    verify_clock(machine, first)[first] = verify_call_clock(machine, first, member->call);
    for (int w = 0; w < machine->segments; w++)
        if (!overwrite(machine, member, member->output[w], member->output_blocks * machine->parts,
                       false) ||
            !overwrite(machine, member, member->input[w], member->input_blocks * machine->parts,
                       true))
            return false;
    for (int i = 1; i < member->programs; i++) {
        verify_join(machine, verify_clock(machine, first + i), user);
        verify_clock(machine, first + i)[first + i] =
            verify_call_clock(machine, first + i, member->call);
    }
    member->done = 0;
    return true;
}

/* The leaf that must be at an output position of a collective that moves data. */
static verify_value expected_leaf(const struct verify_machine *machine, const struct plan *plan,
                                  uint32_t position)
{
    uint32_t parts = machine->parts, rank = (uint32_t)plan->rank, atom = position % parts;
    int block = (int)(position / parts);

    switch (plan->collective) {
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        return value_leaf(&machine->values, block, atom);
    case RONDO_ALL_TO_ALL:
        return value_leaf(&machine->values, block, rank * parts + atom);
    case RONDO_SCATTER:
        return value_leaf(&machine->values, plan->root, rank * parts + atom);
    default: /* broadcast, recv */
        return value_leaf(&machine->values, plan->root, atom);
    }
}

static bool check_moved(struct verify_machine *machine, const struct plan *plan, uint32_t position,
                        verify_value value)
{
    uint32_t wanted = value_expression(expected_leaf(machine, plan, position));
    struct value_node holds, expected;

    if (value_expression(value) == wanted)
        return true;
    value_describe(&machine->values, value, &holds);
    value_describe(&machine->values, wanted << VALUE_BITS, &expected);
    return verify_refuse(machine,
                         "rank %d ends with a wrong output: block %u, atom %u, holds "
                         "input block %u, atom %u, of rank %d, it should hold block %u, atom %u, "
                         "of rank %d",
                         plan->rank, position / machine->parts, position % machine->parts,
                         holds.position / machine->parts, holds.position % machine->parts,
                         holds.low, expected.position / machine->parts,
                         expected.position % machine->parts, expected.low);
}

static bool check_sum(struct verify_machine *machine, const struct plan *plan, uint32_t position,
                      verify_value value)
{
    bool scattered = plan->collective == RONDO_REDUCE_SCATTER;
    uint32_t wanted = scattered ? (uint32_t)plan->rank * machine->parts + position : position;
    struct verify_report *report = machine->report;
    verify_value *first = &machine->first_result[wanted];
    struct value_node holds;
    char text[160];

    value_describe(&machine->values, value, &holds);
    if (holds.count != machine->ranks) {
        verify_describe_ranks(machine, value, true, text, sizeof(text));
        return verify_refuse(machine,
                             "rank %d ends with a wrong output: atom %u lacks the share of %s",
                             plan->rank, position, text);
    }
    if (holds.position != wanted)
        return verify_refuse(machine,
                             "rank %d ends with a wrong output: atom %u holds the sum of "
                             "atom %u of block %u",
                             plan->rank, position, holds.position % machine->parts,
                             holds.position / machine->parts);
    if (!(value & VALUE_FINISHED))
        return verify_refuse(machine,
                             "rank %d ends with an unfinished output: atom %u went "
                             "through no step that finishes a sum (\"finish\": true, in a file)",
                             plan->rank, position);
    if (*first && ((*first ^ value) & ~(verify_value)(VALUE_ORDERED | VALUE_BALANCED)))
        return verify_refuse(machine,
                             "rank %d gets other bits than another rank: atom %u is "
                             "summed in another association",
                             plan->rank, position);
    *first = value;
    report->balanced = report->balanced && (value & VALUE_BALANCED);
    report->rank_order = report->rank_order && (value & VALUE_ORDERED);
    report->one_round = report->one_round && (value & VALUE_SINGLE);
    return true;
}

/* Add to the sentence who wrote the cell. */
static bool tell_writer(struct verify_machine *machine, const struct verify_cell *cell)
{
    char *failure = machine->report->failure;
    size_t length = strlen(failure), room = sizeof(machine->report->failure) - length;
    char text[320];

    verify_describe_epoch(machine, cell->write, text, sizeof(text));
    snprintf(failure + length, room, "; written by %s", text);
    return false;
}

static bool check_output(struct verify_machine *machine, const struct verify_member *member,
                         int segment)
{
    const struct plan *plan = member->plan;
    char text[320];

    for (uint32_t i = 0; i < member->output_blocks * machine->parts; i++) {
        struct verify_cell *cell = &member->output[segment][i];
        uint64_t other = verify_reads(machine, member->actor, cell);

        if (other) {
            verify_describe_epoch(machine, other, text, sizeof(text));
            return verify_refuse(machine,
                                 "race: rank %d's call ends before its output is complete: "
                                 "nothing orders that with %s",
                                 plan->rank, text);
        }
        if (cell->value == VALUE_NONE)
            return verify_refuse(machine,
                                 "rank %d ends with a wrong output: block %u, atom %u, was "
                                 "never written",
                                 plan->rank, i / machine->parts, i % machine->parts);
        if (machine->reduces ? !check_sum(machine, plan, i, cell->value)
                             : !check_moved(machine, plan, i, cell->value))
            return tell_writer(machine, cell);
    }
    return true;
}

/* Checks that this rank has heard, by whatever way, of every other rank's start. */
static bool check_barrier(struct verify_machine *machine, const struct verify_member *member)
{
    const uint32_t *clock = verify_clock(machine, member->actor);

    for (int i = 0; i < machine->size; i++) {
        const struct verify_member *other = &machine->members[i];
        bool heard = false;

        for (int a = other->actor; a < other->actor + other->programs; a++)
            heard = heard || clock[a] >= verify_call_clock(machine, a, member->call);
        if (!heard)
            return verify_refuse(machine,
                                 "rank %d leaves the barrier without knowing that rank "
                                 "%d has come",
                                 member->plan->rank, other->plan->rank);
    }
    return true;
}

bool verify_user_end(struct verify_machine *machine, int number)
{
    struct verify_member *member = &machine->members[number];
    uint32_t *user = verify_clock(machine, member->actor);

    for (int i = 1; i < member->programs; i++)
        verify_join(machine, user, verify_clock(machine, member->actor + i));
    if (machine->collective == RONDO_BARRIER && !check_barrier(machine, member))
        return false;
    user[member->actor] = verify_call_clock(machine, member->actor, member->call + 1);
    for (int w = 0; w < machine->segments; w++)
        if (!check_output(machine, member, w))
            return false;
    member->call++;
    return !machine->out_of_memory || verify_no_memory(machine);
}
