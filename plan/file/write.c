/* SPDX-License-Identifier: BSD-3-Clause */
/* write.c - plans as JSON, one step per line, so that a line number names a step. */
#include "plan/file/file.h"

static void write_operand(const struct plan *plan, const struct plan_operand *operand, FILE *to)
{
    static const char *const names[] = {"input", "output", "scratch", "slot"};
    bool slot = operand->buffer == PLAN_SLOT;

    fprintf(to, "{\"%s\": %d", names[operand->buffer],
            slot ? (int)operand->rank : (int)operand->block);
    if (slot && operand->channel)
        fprintf(to, ", \"channel\": %u", operand->channel);
    if (operand->first)
        fprintf(to, ", \"first\": %u", operand->first);
    if (!slot && operand->rank != plan->rank)
        fprintf(to, ", \"rank\": %d", operand->rank);
    fputc('}', to);
}

static void write_operands(const struct plan *plan, const struct plan_operand *operands, int count,
                           FILE *to)
{
    for (int i = 0; i < count; i++) {
        fputs(i ? ", " : "", to);
        write_operand(plan, &operands[i], to);
    }
}

static void write_step(const struct plan *plan, const struct plan_step *step, FILE *to)
{
    static const char *const verbs[] = {"copy", "reduce", "signal", "wait"};

    fprintf(to, "{\"do\": \"%s\", ", verbs[step->verb]);
    if (step->verb == PLAN_SIGNAL || step->verb == PLAN_WAIT) {
        fprintf(to, "\"event\": \"%s\", \"peer\": %d", step->event == PLAN_DATA ? "data" : "credit",
                step->peer);
        if (step->channel)
            fprintf(to, ", \"channel\": %u", step->channel);
        if (step->flags & PLAN_ADDRESSES)
            fputs(", \"addresses\": true", to);
        return;
    }
    fprintf(to, "\"atoms\": %u, \"from\": [", step->atoms);
    write_operands(plan, plan_sources(plan, step), step->sources, to);
    fputs("], \"to\": [", to);
    write_operands(plan, plan_destinations(plan, step), step->destinations, to);
    fputs(step->flags & PLAN_FINISH ? "], \"finish\": true" : "]", to);
    if (step->flags & PLAN_BALANCED)
        fputs(", \"balanced\": true", to);
}

static void write_programs(const struct plan *plan, const struct plan_notes *notes, FILE *to)
{
    for (int i = 0; i < plan->programs; i++) {
        const struct plan_program *program = &plan->program[i];

        fputs(i ? ", [" : "[", to);
        for (uint32_t s = program->begin; s < program->end; s++) {
            fputs(s > program->begin ? ",\n    " : "\n    ", to);
            write_step(plan, &plan->steps[s], to);
            if (notes)
                notes->of_step(notes, plan->rank, s, to);
            fputc('}', to);
        }
        fputc(']', to);
    }
}

void plan_file_write(struct plan *const *plans, int size, const struct plan_notes *notes, FILE *to)
{
    const struct plan *first = plans[0];

    fprintf(to,
            "{\"format\": \"rondo plan 1\",\n \"collective\": \"%s\", \"algorithm\": \"%s\",\n"
            " \"ranks\": %d, \"root\": %d, \"parts\": %u, \"message_atoms\": %u, "
            "\"scratch_blocks\": %u",
            rondo_collective_name(first->collective), first->algorithm, first->size, first->root,
            first->parts, first->message_atoms, first->scratch_blocks);
    if (notes)
        notes->of_whole(notes, to);
    fputs(",\n \"plans\": [", to);
    for (int rank = 0; rank < size; rank++) {
        fprintf(to, "%s\n  {\"rank\": %d, \"programs\": [", rank ? "," : "", rank);
        write_programs(plans[rank], notes, to);
        fputs("]}", to);
    }
    fputs("]}\n", to);
}
