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

/* Lengths that a step passes to or from others: in slots, or in their memory. */
static int foreign(const struct plan *plan, const struct plan_operand *operands, int count)
{
    int others = 0;

    for (int i = 0; i < count; i++)
        others += operands[i].buffer == PLAN_SLOT || operands[i].rank != plan->rank;
    return others;
}

static struct cost work_of(const struct plan *plan)
{
    struct cost work = {0};
    double taken = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        double length = (double)step->atoms / plan->parts;

        if (step->verb != PLAN_COPY && step->verb != PLAN_REDUCE)
            continue;
        taken += length * foreign(plan, plan_sources(plan, step), step->sources);
        work.sent += length * foreign(plan, plan_destinations(plan, step), step->destinations);
        work.copied += length * (step->destinations - 1) / 2;
        if (step->verb == PLAN_COPY)
            work.copied += length;
        else
            work.reduced += length * step->sources;
    }
    if (plan->message_atoms == 0)
        work.sent += taken; /* memory of peers is read and written by the same rank */
    else if (taken > work.sent)
        work.sent = taken;
    return work;
}

struct cost ranks_work(const struct ranks *ranks)
{
    struct cost most = {0};

    for (int rank = 0; rank < ranks->size; rank++) {
        struct cost work = work_of(ranks->plans[rank]);

        most.copied = work.copied > most.copied ? work.copied : most.copied;
        most.reduced = work.reduced > most.reduced ? work.reduced : most.reduced;
        most.sent = work.sent > most.sent ? work.sent : most.sent;
    }
    return most;
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
