/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * breaks.c - breaks the first rank's plan at each of its steps in turn, proves it, and writes down
 * what the verifier says: a step is left out, or the first range that it touches becomes the next
 * chunk.
 */
#include "cli/explain/breaks.h"

#include "base/fail.h"
#include "plan/explain/explain.h"
#include "plan/verify/verify.h"

#include <stdlib.h>
#include <string.h>

/* Returns false where a step has no range of the user's memory, or only one that it could be. */
static bool take_other_chunk(struct plan *plan, uint32_t number)
{
    const struct plan_step *step = &plan->steps[number];
    bool moves = step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;

    for (int i = 0; moves && i < step->sources + step->destinations; i++) {
        struct plan_operand *operand = &plan->operands[step->operand + (uint32_t)i];

        if (operand->buffer == PLAN_SLOT || step->atoms >= plan->parts)
            continue;
        operand->first = (operand->first + 1) % (plan->parts - step->atoms + 1);
        return true;
    }
    return false;
}

static void write_text(const char *text, FILE *to)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void copy_plan(const struct plan *plan, struct plan *ret_copy)
{
    *ret_copy = *plan;
    ret_copy->steps = malloc(plan->step_count * sizeof(*plan->steps) + 1);
    ret_copy->operands = malloc(plan->operand_count * sizeof(*plan->operands) + 1);
    if (!ret_copy->steps || !ret_copy->operands)
        return;
    memcpy(ret_copy->steps, plan->steps, plan->step_count * sizeof(*plan->steps));
    if (plan->operand_count) /* a barrier has none */
        memcpy(ret_copy->operands, plan->operands, plan->operand_count * sizeof(*plan->operands));
}

/* Breaks `step` of plans[0] by `mutate` and writes the sentence; "" where it can't be broken so. */
static rondo_result write_break(struct plan **plans, int count, uint32_t step,
                                bool (*mutate)(struct plan *, uint32_t), FILE *to)
{
    static const struct verify_options options = {0};
    struct verify_report report = {.failure = ""};
    struct plan *whole = plans[0], broken;
    rondo_result result = RONDO_OK;

    copy_plan(whole, &broken);
    plans[0] = &broken;
    if (!broken.steps || !broken.operands)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the page.");
    else if (mutate(&broken, step) && !verify_plans(plans, count, &options, &report))
        strcpy(report.failure, "The plan is right without it, too.");
    plans[0] = whole;
    write_text(report.failure, to);
    free(broken.steps);
    free(broken.operands);
    return result;
}

static rondo_result write_step(const struct subject *subject, uint32_t step, FILE *to)
{
    const struct plan *plan = subject->plans[0];
    char text[400];
    rondo_result result;

    plan_describe_step(plan, &plan->steps[step], text, sizeof(text));
    fputs(step ? ",\n[" : "[", to);
    write_text(text, to);
    fputc(',', to);
    result = write_break(subject->plans, subject->plan_count, step, verify_drop_step, to);
    fputc(',', to);
    if (!result)
        result = write_break(subject->plans, subject->plan_count, step, take_other_chunk, to);
    fputc(']', to);
    return result;
}

rondo_result subject_write_breaks(const struct subject *subject, FILE *to)
{
    rondo_result result = RONDO_OK;

    fputs("\"breaks\":[", to);
    for (uint32_t step = 0;
         subject->ranks <= EXPLAIN_FULL && !result && step < subject->plans[0]->step_count; step++)
        result = write_step(subject, step, to);
    fputs("],\n", to);
    return result;
}
