/* SPDX-License-Identifier: BSD-3-Clause */
/* verify_forms.c - plans of all ranks, for tests of the verifier. */
#include "tests/plan/verify_forms.h"

#include <stdlib.h>
#include <string.h>

bool forms_make(const char *name, rondo_collective collective, int size, int root,
                struct forms *ret_forms)
{
    const struct algorithm *algorithm = algorithm_find(name);
    bool made = true;

    *ret_forms = (struct forms){.size = size};
    if (!algorithm || !algorithm->forms[collective].write)
        return false;
    if (collective == RONDO_SEND)
        return !algorithm_plan(algorithm, RONDO_SEND, size, 0, size - 1, &ret_forms->plans[0]) &&
               !algorithm_plan(algorithm, RONDO_RECV, size, size - 1, 0,
                               &ret_forms->plans[size - 1]);
    for (int r = 0; r < size; r++)
        made = made && !algorithm_plan(algorithm, collective, size, r, root, &ret_forms->plans[r]);
    return made;
}

void forms_open(rondo_collective collective, int size, struct forms *ret_forms)
{
    *ret_forms = (struct forms){.size = size};
    for (int r = 0; r < size; r++) {
        if (plan_open(collective, "by hand", size, r, 0, &ret_forms->plans[r]))
            return;
        plan_shape(ret_forms->plans[r], 1, 1, 0);
    }
}

void forms_close(struct forms *forms)
{
    for (int r = 0; r < forms->size; r++)
        plan_close(forms->plans[r]);
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *to = calloc(count + 1, size);

    if (to && count)
        memcpy(to, from, count * size);
    return to;
}

struct plan *forms_copy_plan(const struct plan *plan)
{
    struct plan *copy = copy_of(plan, 1, sizeof(*plan));

    copy->steps = copy_of(plan->steps, plan->step_count, sizeof(*plan->steps));
    copy->operands = copy_of(plan->operands, plan->operand_count, sizeof(*plan->operands));
    copy->step_room = plan->step_count;
    copy->operand_room = plan->operand_count;
    return copy;
}

bool forms_prove(const struct forms *forms, bool in_place, struct verify_report *ret_report)
{
    struct verify_options options = {.in_place = in_place};

    return verify_plans(forms->plans, forms->size, &options, ret_report) == RONDO_OK;
}
