/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - which plans a GPU can run: see device.h. */
#include "plan/device.h"

#include "base/collective.h"
#include "base/fail.h"

int plan_device_slots(enum plan_device device)
{
    return device == PLAN_DEVICE_KERNEL ? 2 : 1;
}

static rondo_result refuse(const struct plan *plan, const char *why)
{
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "%s %s over %d ranks %s: choose another algorithm.",
                      plan->algorithm, rondo_collective_name(plan->collective), plan->size, why);
}

static bool has_slots(const struct plan *plan, const struct plan_step *step)
{
    const struct plan_operand *operands = plan_sources(plan, step);
    bool some = false;

    for (int i = 0; i < step->sources + step->destinations; i++)
        some |= operands[i].buffer == PLAN_SLOT;
    return some;
}

/* A stream does one thing after the other, and a mailbox has no room for data. */
static rondo_result check_operations(const struct plan *plan)
{
    if (plan->programs > 1)
        return refuse(plan, "has several programs, which operations of a stream cannot run side by "
                            "side");
    if (plan->scratch_blocks)
        return refuse(plan, "needs scratch memory, which operations of a stream do not have");
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];

        if ((step->verb == PLAN_COPY || step->verb == PLAN_REDUCE) && has_slots(plan, step))
            return refuse(plan, "has messages with data, which operations of a stream do not "
                                "carry");
    }
    return RONDO_OK;
}

void plan_device_join(struct plan *plan, enum plan_device device)
{
    for (uint32_t i = 0; i < plan->step_count && device == PLAN_DEVICE_OPERATIONS; i++)
        plan->steps[i].channel = 0;
}

rondo_result plan_device_check(const struct plan *plan, enum plan_device device)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].sources > PLAN_DEVICE_OPERANDS ||
            plan->steps[i].destinations > PLAN_DEVICE_OPERANDS)
            return refuse(plan, "has steps of more than 64 operands, the most on a GPU");
    if (device == PLAN_DEVICE_OPERATIONS)
        return check_operations(plan);
    if (plan->scratch_blocks && !plan->message_atoms)
        return refuse(plan, "needs scratch memory for whole vectors, which a GPU does not offer");
    return RONDO_OK;
}
