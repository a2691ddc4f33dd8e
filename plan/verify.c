/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify.c - the proof of a plan. The parts: verify_shape.c looks at the plans, verify_run.c runs them,
 * verify_link.c and verify_step.c are the steps, verify_value.c what memory holds, verify_race.c the order of events,
 * verify_user.c the result. docs/verifier.md says what is proved and why one run is enough.
 */
#include "plan/verify_machine.h"

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
