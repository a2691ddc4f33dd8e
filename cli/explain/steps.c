/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - `rondo explain --steps`: the plan as it is, with the numbers that --break takes. */
#include "cli/explain/subject.h"

#include "base/collective.h"

#include <string.h>

static int print_rank(const struct plan *plan)
{
    char text[400];

    printf("rank %d: %u steps\n", plan->rank, plan->step_count);
    for (int p = 0; p < plan->programs; p++) {
        if (plan->programs > 1)
            printf("  program %d, beside the others\n", p);
        for (uint32_t step = plan->program[p].begin; step < plan->program[p].end; step++) {
            plan_describe_step(plan, &plan->steps[step], text, sizeof(text));
            printf("%6u  %s\n", step, text);
        }
    }
    return 1;
}

/* The command that breaks these plans and no others. */
static void print_verify(const struct subject *subject)
{
    char groups[256]; /* room for the 64 ranks that are explained at most */

    printf("`rondo verify %s --algo %s --ranks %d", rondo_collective_name(subject->collective),
           subject->algorithm->name, subject->ranks);
    if (subject->groups) {
        grouping_describe(subject->groups, groups, sizeof(groups));
        printf(" --groups %s", groups);
    } else if (subject_sees_groups(subject)) {
        printf(" --groups 1x%d", subject->ranks); /* the ranks in their order, as shown */
    }
    if (collective_has_root(subject->collective))
        printf(" --root %d", subject->root);
    printf(" --break STEP --rank RANK` proves it without one of them.\n");
}

int subject_print_steps(const struct subject *subject, int rank)
{
    int printed = 0;

    for (int i = 0; i < subject->plan_count; i++)
        if (subject->plans[i] && (rank == STEPS_ALL || subject->plans[i]->rank == rank))
            printed += print_rank(subject->plans[i]);
    if (printed && !strncmp(subject->algorithm->name, "file:", 5)) {
        printf("Take a line out of the file, and `rondo verify --plan` says what is wrong then.\n");
        return 0;
    }
    if (printed) {
        print_verify(subject);
        return 0;
    }
    fprintf(stderr, "rondo explain: rank %d takes no part in a %s of %d ranks\n", rank,
            rondo_collective_name(subject->collective), subject->ranks);
    return 2;
}
