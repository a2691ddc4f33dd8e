/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify.c - the proof of a plan. The parts: verify/shape.c looks at the plans, verify/run.c runs
 * them, verify/link.c and verify/step.c are the steps, verify/value.c what memory holds,
 * verify/race.c the order of events, verify/user.c the result. docs/verifier.md says what is proved
 * and why one run is enough.
 */
#include "plan/verify/machine.h"

#include "base/fail.h"

#include <string.h>

rondo_result verify_plans(struct plan *const *plans, int size, const struct verify_options *options,
                          struct verify_report *report)
{
    struct verify_machine machine;
    bool good;

    memset(report, 0, sizeof(*report));
    report->balanced = report->rank_order = report->one_round = true;
    good =
        verify_machine_open(&machine, plans, size, options, report) && verify_machine_run(&machine);
    verify_machine_close(&machine);
    if (good)
        return RONDO_OK;
    report->balanced = report->rank_order = report->one_round = false;
    if (machine.out_of_memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the proof of a plan of %d ranks.",
                          size);
    return RONDO_ERROR_INTERNAL; /* the sentence is in the report: a refusal is an answer */
}

bool verify_drop_step(struct plan *plan, uint32_t step)
{
    if (step >= plan->step_count)
        return false;
    memmove(plan->steps + step, plan->steps + step + 1,
            (plan->step_count - step - 1) * sizeof(*plan->steps));
    plan->step_count--;
    plan->taken = step + 1;
    for (int i = 0; i < plan->programs; i++) {
        plan->program[i].begin -= plan->program[i].begin > step;
        plan->program[i].end -= plan->program[i].end > step;
    }
    return true;
}
