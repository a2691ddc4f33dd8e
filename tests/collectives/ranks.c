/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.c - making and measuring the plans of all ranks. */
#include "ranks.h"

#include "base/collective.h"

#include <stdio.h>

void each_form(void (*look)(const struct subject *subject))
{
    for (int i = 0; algorithms[i]; i++) {
        for (int c = 0; c < RONDO_COLLECTIVES; c++) {
            struct subject subject = {algorithms[i], (rondo_collective)c, &algorithms[i]->forms[c]};

            if (subject.form->write && !collective_is_pair(subject.collective))
                look(&subject);
        }
    }
}

const char *subject_name(const struct subject *subject, int size, int root)
{
    static char name[128];

    snprintf(name, sizeof(name), "%s %s over %d ranks, root %d", subject->algorithm->name,
             rondo_collective_name(subject->collective), size, root);
    return name;
}

bool ranks_open(struct ranks *ranks, const struct subject *subject, int size, int root)
{
    for (ranks->size = 0; ranks->size < size; ranks->size++) {
        if (algorithm_plan(subject->algorithm, subject->collective, size, ranks->size, root,
                           &ranks->plans[ranks->size])) {
            ranks_close(ranks);
            return false;
        }
    }
    return true;
}

void ranks_close(struct ranks *ranks)
{
    while (ranks->size > 0)
        plan_close(ranks->plans[--ranks->size]);
}

int ranks_messages(const struct ranks *ranks)
{
    int most = 0;

    for (int rank = 0; rank < ranks->size; rank++) {
        const struct plan *plan = ranks->plans[rank];
        int messages = 0;

        for (uint32_t i = 0; i < plan->step_count; i++)
            messages += plan->steps[i].verb == PLAN_SIGNAL && plan->steps[i].event == PLAN_DATA;
        most = messages > most ? messages : most;
    }
    return most;
}
