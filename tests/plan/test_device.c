/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device.c - which plans the two executors of a GPU take, and that the proof for them knows
 * what they lack. */
#include "base/fail.h"
#include "plan/device.h"
#include "tests/plan/verify_forms.h"

#include <criterion/criterion.h>
#include <string.h>

static bool takes(const char *name, rondo_collective collective, enum plan_device device)
{
    struct forms forms;
    bool all = forms_make(name, collective, 4, 0, &forms);

    for (int r = 0; r < 4 && all; r++)
        all = !plan_device_check(forms.plans[r], device);
    forms_close(&forms);
    return all;
}

Test(plan_device, a_kernel_takes_plans_with_slots_and_operations_of_a_stream_do_not)
{
    cr_expect(takes("ring", RONDO_ALL_REDUCE, PLAN_DEVICE_KERNEL));
    cr_expect(takes("tree", RONDO_BROADCAST, PLAN_DEVICE_KERNEL));
    cr_expect(takes("zero_copy", RONDO_ALL_GATHER, PLAN_DEVICE_KERNEL));
    cr_expect(takes("zero_copy", RONDO_ALL_GATHER, PLAN_DEVICE_OPERATIONS));
    cr_expect(takes("direct", RONDO_BARRIER, PLAN_DEVICE_OPERATIONS));
    cr_expect(!takes("ring", RONDO_ALL_REDUCE, PLAN_DEVICE_OPERATIONS));
    cr_expect(strstr(fail_sentence(), "operations of a stream"), "%s", fail_sentence());
}

Test(plan_device, more_operands_than_a_gpu_takes_are_refused)
{
    struct plan *plan;

    cr_assert(!algorithm_plan(algorithm_find("one_shot"), RONDO_ALL_REDUCE,
                              PLAN_DEVICE_OPERANDS + 1, 0, 0, &plan));
    cr_expect(plan_device_check(plan, PLAN_DEVICE_KERNEL) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(strstr(fail_sentence(), "more than 64 operands"), "%s", fail_sentence());
    plan_close(plan);
}

/* Each of two ranks sends a flag on two channels before it waits for any. */
static bool prove(enum plan_device device, struct verify_report *report)
{
    struct verify_options options = {.slots = 1};
    struct forms forms;
    bool proved;

    forms_open(RONDO_BARRIER, 2, &forms);
    for (int r = 0; r < 2; r++) {
        plan_notify(forms.plans[r], 1 - r, 0, 0);
        plan_notify(forms.plans[r], 1 - r, 1, 0);
        plan_await(forms.plans[r], 1 - r, 0, 0);
        plan_await(forms.plans[r], 1 - r, 1, 0);
        plan_device_join(forms.plans[r], device);
    }
    proved = !verify_plans(forms.plans, 2, &options, report);
    forms_close(&forms);
    return proved;
}

Test(plan_device, a_mailbox_is_all_that_two_channels_have_in_operations_of_a_stream)
{
    struct verify_report report;

    cr_expect(prove(PLAN_DEVICE_KERNEL, &report), "%s", report.failure);
    cr_expect(!prove(PLAN_DEVICE_OPERATIONS, &report));
    cr_expect(strstr(report.failure, "deadlock"), "%s", report.failure);
}
