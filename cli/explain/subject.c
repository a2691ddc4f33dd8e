/* SPDX-License-Identifier: BSD-3-Clause */
/* subject.c - groups and plans of what is explained. */
#include "cli/explain/subject.h"

#include "cli/plans.h"

bool subject_sees_groups(const struct subject *subject)
{
    return subject->algorithm->levels || subject->algorithm->any_order;
}

/* For an algorithm in two levels: the groups that were asked for, or those it takes by itself. */
static rondo_result make_groups(struct subject *subject)
{
    if (!subject->algorithm->levels && !(subject->algorithm->any_order && subject->group_text))
        return RONDO_OK;
    if (!subject->group_text)
        return grouping_square(subject->ranks, &subject->groups);
    return grouping_parse(subject->group_text, subject->ranks, &subject->groups);
}

rondo_result subject_open(struct subject *subject)
{
    rondo_result result = make_groups(subject);

    if (result)
        return result;
    subject->plans = plans_open(subject->algorithm,
                                (struct plan_request){.collective = subject->collective,
                                                      .size = subject->ranks,
                                                      .root = subject->root,
                                                      .groups = subject->groups},
                                &subject->plan_count);
    return subject->plans ? RONDO_OK : RONDO_ERROR_MEMORY;
}

void subject_close(struct subject *subject)
{
    if (subject->plans)
        plans_close(subject->plans, subject->plan_count);
    grouping_close(subject->groups);
}

struct explain_costs subject_costs(const struct subject *subject, const struct explain_costs *costs)
{
    struct explain_costs own = *costs;

    if (subject->groups && costs->across.bandwidth > 0) {
        own.across.group_of = subject->groups->group_of;
        own.across.index_of = subject->groups->index_of;
    }
    return own;
}
