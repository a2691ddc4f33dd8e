/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - the machine's memory, and sentences about it. */
#include "plan/verify/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool open_links(struct verify_machine *machine)
{
    size_t slots = (size_t)machine->slots, actors = (size_t)machine->actor_count;
    size_t count = (size_t)machine->link_count * slots, atoms = 0;
    struct verify_parcel *parcels;
    uint32_t *clocks;

    for (int i = 0; i < machine->size; i++)
        if (machine->plans[i])
            atoms = machine->plans[i]->message_atoms;
    machine->slot_pool = calloc(count + 1, sizeof(*machine->slot_pool));
    machine->parcel_pool = calloc(count * atoms + 1, sizeof(*machine->parcel_pool));
    machine->clock_pool = calloc(count * actors + 1, sizeof(*machine->clock_pool));
    if (!machine->slot_pool || !machine->parcel_pool || !machine->clock_pool)
        return verify_no_memory(machine);
    parcels = machine->parcel_pool;
    clocks = machine->clock_pool;
    for (size_t i = 0; i < count; i++) {
        machine->slot_pool[i].parcels = parcels + i * atoms;
        machine->slot_pool[i].sent_clock = machine->slot_pool[i].freed_clock = clocks + i * actors;
    }
    for (int i = 0; i < machine->link_count; i++)
        machine->links[i].slot = machine->slot_pool + (size_t)i * slots;
    return true;
}

/* Input and output of one segment; in place they overlap as rondo.h says. Returns the cells
 * used. */
static size_t lay_out(struct verify_machine *machine, struct verify_member *member,
                      struct verify_cell *base, int segment)
{
    size_t parts = machine->parts, in = member->input_blocks, out = member->output_blocks;
    size_t shift = (size_t)member->plan->rank * parts;

    member->input[segment] = base;
    member->output[segment] = base + in * parts;
    if (!machine->in_place || !in || !out)
        return (in + out) * parts;
    member->output[segment] = in > out ? base + shift : base;
    member->input[segment] = out > in ? base + shift : base;
    return (in > out ? in : out) * parts;
}

static bool open_member(struct verify_machine *machine, struct verify_member *member,
                        const struct plan *plan)
{
    size_t parts = machine->parts, used = 0;

    member->plan = plan;
    if (!plan)
        return true;
    member->input_blocks =
        (uint32_t)plan_input_blocks(plan->collective, plan->size, plan->rank, plan->root);
    member->output_blocks =
        (uint32_t)plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root);
    member->memory =
        calloc(((size_t)(member->input_blocks + member->output_blocks) * (size_t)machine->segments +
                plan->scratch_blocks) *
                       parts +
                   1,
               sizeof(*member->memory));
    if (!member->memory)
        return verify_no_memory(machine);
    for (int w = 0; w < machine->segments; w++)
        used += lay_out(machine, member, member->memory + used, w);
    member->scratch = member->memory + used;
    if (machine->member_of[plan->rank] == VERIFY_NOBODY)
        machine->member_of[plan->rank] = (int)(member - machine->members);
    return true;
}

static bool open_operands(struct verify_machine *machine)
{
    for (int i = 0; i < machine->size; i++) {
        const struct plan *plan = machine->plans[i];
        struct verify_member *member = &machine->members[i];

        if (!plan)
            continue;
        member->step_links = calloc((size_t)plan->step_count + 1, sizeof(int32_t));
        member->operand_links = calloc((size_t)plan->operand_count + 1, sizeof(int32_t));
        if (!member->step_links || !member->operand_links)
            return verify_no_memory(machine);
    }
    return true;
}

static bool open_tables(struct verify_machine *machine)
{
    size_t actors = (size_t)machine->actor_count, ranks = (size_t)machine->ranks, longest = 1;
    uint32_t blocks = 1;

    for (int i = 0; i < machine->size; i++)
        if (machine->members[i].input_blocks > blocks)
            blocks = machine->members[i].input_blocks;
    for (int i = 0; i < machine->size; i++)
        for (uint32_t s = 0; machine->plans[i] && s < machine->plans[i]->step_count; s++) {
            const struct plan_step *step = &machine->plans[i]->steps[s];
            size_t operands = (size_t)step->sources + (size_t)step->destinations;

            longest = operands > longest ? operands : longest;
        }
    machine->clocks = calloc(actors * actors + 1, sizeof(*machine->clocks));
    machine->introduced = calloc(actors * ranks + 1, 1);
    machine->queue = calloc(actors + 1, sizeof(*machine->queue));
    machine->ranges = calloc(longest, sizeof(*machine->ranges));
    machine->sums = calloc(longest, sizeof(*machine->sums));
    machine->first_result = calloc((size_t)blocks * machine->parts, sizeof(verify_value));
    return (machine->clocks && machine->introduced && machine->queue && machine->ranges &&
            machine->sums && machine->first_result &&
            value_table_init(&machine->values, machine->ranks, blocks * machine->parts)) ||
           verify_no_memory(machine);
}

bool verify_machine_open(struct verify_machine *machine, struct plan *const *plans, int size,
                         const struct verify_options *options, struct verify_report *report)
{
    *machine = (struct verify_machine){.plans = plans, .size = size, .report = report};
    machine->slots = options && options->slots > 0 ? options->slots : 2;
    machine->in_place = options && options->in_place;
    machine->calls = 2;
    machine->members = calloc((size_t)size + 1, sizeof(*machine->members));
    if (!machine->members)
        return verify_no_memory(machine);
    for (int i = 0; i < size; i++)
        machine->members[i].plan = plans[i];
    if (!verify_shape(machine) || !open_operands(machine) || !verify_connect(machine))
        return false;
    machine->member_of = malloc((size_t)machine->ranks * sizeof(*machine->member_of));
    if (!machine->member_of)
        return verify_no_memory(machine);
    for (int r = 0; r < machine->ranks; r++)
        machine->member_of[r] = VERIFY_NOBODY;
    for (int i = 0; i < size; i++)
        if (!open_member(machine, &machine->members[i], plans[i]))
            return false;
    return open_tables(machine) && open_links(machine) && verify_post(machine);
}

void verify_machine_close(struct verify_machine *machine)
{
    for (int i = 0; machine->members && i < machine->size; i++) {
        free(machine->members[i].step_links);
        free(machine->members[i].operand_links);
        free(machine->members[i].posted);
        free(machine->members[i].memory);
    }
    value_table_done(&machine->values);
    free(machine->members);
    free(machine->member_of);
    free(machine->actors);
    free(machine->clocks);
    free(machine->notes);
    free(machine->introduced);
    free(machine->links);
    free(machine->link_index);
    free(machine->slot_pool);
    free(machine->parcel_pool);
    free(machine->clock_pool);
    free(machine->readers);
    free(machine->ranges);
    free(machine->sums);
    free(machine->queue);
    free(machine->first_result);
}

/* ---- Sentences ------------------------------------------------------------------------------- */

void verify_place(const struct verify_machine *machine, const struct verify_actor *actor,
                  uint32_t step, char *text, size_t size)
{
    const struct plan *plan = machine->plans[actor->member];
    uint32_t number = step + (plan->taken && step + 1 >= plan->taken);
    char words[200], program[24] = "", line[24] = "";

    plan_describe_step(plan, &plan->steps[step], words, sizeof(words));
    if (plan->lines)
        snprintf(line, sizeof(line), " in line %u", plan->lines[number]);
    if (plan->programs > 1)
        snprintf(program, sizeof(program), "program %d, ", actor->program);
    snprintf(text, size, "rank %d, %sstep %u%s (%s)", plan->rank, program, number, line, words);
}

bool verify_refuse(struct verify_machine *machine, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(machine->report->failure, sizeof(machine->report->failure), format, arguments);
    va_end(arguments);
    return false;
}

bool verify_fail(struct verify_machine *machine, const struct verify_actor *actor,
                 const char *format, ...)
{
    char place[320], why[700];
    va_list arguments;

    verify_place(machine, actor, actor->step, place, sizeof(place));
    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    return verify_refuse(machine, "%s: %s", place, why);
}

bool verify_no_memory(struct verify_machine *machine)
{
    machine->out_of_memory = true;
    return verify_refuse(machine, "out of memory");
}

/* "rank 3" or "ranks 0..3, 5", cut where the text ends. */
void verify_describe_ranks(const struct verify_machine *machine, verify_value value, bool missing,
                           char *text, size_t size)
{
    int count = 0;
    size_t length;
    const char *comma = " ";

    for (int r = 0; r < machine->ranks; r++)
        count += value_has_rank(&machine->values, value, r) != missing;
    length = (size_t)snprintf(text, size, count == 1 ? "rank" : "ranks");
    for (int r = 0; r < machine->ranks && length + 32 < size; r++) {
        int last = r;

        if (value_has_rank(&machine->values, value, r) == missing)
            continue;
        while (last + 1 < machine->ranks &&
               value_has_rank(&machine->values, value, last + 1) != missing)
            last++;
        if (last == r)
            length += (size_t)snprintf(text + length, size - length, "%s%d", comma, r);
        else
            length += (size_t)snprintf(text + length, size - length, "%s%d%s%d", comma, r,
                                       last == r + 1 ? ", " : "..", last);
        comma = ", ";
        r = last;
    }
    if (length + 32 >= size)
        snprintf(text + length, size - length, " ...");
}
