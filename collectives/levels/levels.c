/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - a rank's place in two levels, and the slices of its group. */
#include "collectives/levels/hierarchy.h"

struct levels levels_of(struct plan *plan)
{
    const struct grouping *groups = plan->groups;
    const struct recipe *recipe = recipe_for(plan->recipe, groups->groups);
    int group = groups->group_of[plan->rank], index = groups->index_of[plan->rank];

    return (struct levels){.plan = plan,
                           .groups = groups,
                           .recipe = recipe,
                           .group = group,
                           .index = index,
                           .members = grouping_members(groups, group),
                           .count = groups->groups,
                           .rail = grouping_first_rail(groups, group, index),
                           .end = grouping_first_rail(groups, group, index + 1),
                           .root_group = groups->group_of[plan->root],
                           .inside = grouping_members(groups, group) > 1 || recipe->reaches,
                           .across = groups->groups > 1};
}

struct inner levels_inside(const struct levels *levels, rondo_collective collective, int channel)
{
    struct inner inner = {.algorithm = levels->recipe->inside,
                          .collective = collective,
                          .size = levels->members,
                          .rank = levels->index,
                          .root = levels->groups->index_of[levels->plan->root],
                          .ranks = levels->groups->members + levels->groups->begin[levels->group],
                          .channel = channel,
                          .introduced = levels->recipe->reaches};

    return inner;
}

struct inner levels_across(const struct levels *levels, rondo_collective collective, int channel,
                           int rail)
{
    struct inner inner = {.algorithm = levels->recipe->across,
                          .collective = collective,
                          .size = levels->count,
                          .rank = levels->group,
                          .root = levels->root_group,
                          .rail = rail,
                          .groups = levels->groups,
                          .channel = channel,
                          .introduced = levels->recipe->reaches};

    return inner;
}

void levels_add_slices(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                       int member, int parts)
{
    int begin = grouping_first_rail(levels->groups, levels->group, member);
    int end = grouping_first_rail(levels->groups, levels->group, member + 1);

    places_next(levels->plan, places);
    places_add(levels->plan, places,
               (struct place){buffer, 0, begin * parts, (end - begin) * parts});
}

void levels_add_atom(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                     int atom)
{
    places_next(levels->plan, places);
    places_add(levels->plan, places, (struct place){buffer, 0, atom, 1});
}
