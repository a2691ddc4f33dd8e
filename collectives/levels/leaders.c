/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaders.c - two levels for short vectors: one rank of each group, its leader, speaks for it.
 *
 *     inside   reduce       the leader adds up its group's vectors, in one round
 *     across   all_reduce   leaders alone, in one round or in log2 g
 *     inside   broadcast    the leader hands out the result
 *
 * Only the leaders' messages are slow ones, and there is one round of them where hierarchy.c has
 * two; but all of the vector goes over one rail. broadcast is the last two parts, reduce the first
 * two. A composition of `one_shot`, `direct` and, of many groups, `binomial` (compose.h).
 *
 * The root leads its group; the leaders are the ranks on the root's rail.
 * Order of sums: as in hierarchy.c; all of these keep the balanced tree.
 */
#include "collectives/levels/hierarchy.h"

enum { CHANNEL_IN = 0, CHANNEL_ACROSS = 1, CHANNEL_OUT = 3, FEW_GROUPS = 8 };

extern const struct algorithm direct_algorithm, one_shot_algorithm, binomial_algorithm;

static const struct recipe many = {&one_shot_algorithm, &binomial_algorithm, .reaches = false};
static const struct recipe few = {&one_shot_algorithm, &one_shot_algorithm, .beyond = &many,
                                  .groups = FEW_GROUPS};

struct team {
    struct levels levels;
    int rail;   /* of the leaders */
    int leader; /* of my group: its place in there */
    bool leads;
};

static struct team team_of(struct plan *plan)
{
    const struct grouping *groups = plan->groups;
    struct team team = {.levels = levels_of(plan)};
    int root = plan->root;

    team.rail = grouping_first_rail(groups, groups->group_of[root], groups->index_of[root]);
    team.leader = groups->index_of[grouping_on_rail(groups, team.levels.group, team.rail)];
    team.leads = team.leader == team.levels.index;
    return team;
}

/* A part whose input and output are these buffers, as a whole. */
static void add_part(const struct team *team, struct inner *inner, enum plan_buffer input,
                     enum plan_buffer output)
{
    levels_add_atom(&team->levels, &inner->input, input, 0);
    levels_add_atom(&team->levels, &inner->output, output, 0);
    compose(team->levels.plan, inner);
}

/* My group's sum to its leader; `result` is where the leader keeps it. */
static void sum_inside(const struct team *team, enum plan_buffer result)
{
    struct inner inner = levels_inside(&team->levels, RONDO_REDUCE, CHANNEL_IN);

    inner.root = team->leader;
    inner.finish = !team->levels.across;
    if (team->levels.inside || !team->levels.across)
        add_part(team, &inner, PLAN_INPUT, result);
}

static void hand_out(const struct team *team, enum plan_buffer from)
{
    struct inner inner = levels_inside(&team->levels, RONDO_BROADCAST, CHANNEL_OUT);

    inner.algorithm = &direct_algorithm;
    inner.root = team->leader;
    if (team->levels.inside || !team->levels.across)
        add_part(team, &inner, from, PLAN_OUTPUT);
}

static void all_reduce(struct plan *plan)
{
    struct team team = team_of(plan);
    struct inner across = levels_across(&team.levels, RONDO_ALL_REDUCE, CHANNEL_ACROSS, team.rail);

    plan_shape(plan, 1, 1, 0);
    sum_inside(&team, PLAN_OUTPUT);
    across.finish = true;
    if (team.leads && team.levels.across)
        add_part(&team, &across, team.levels.inside ? PLAN_OUTPUT : PLAN_INPUT, PLAN_OUTPUT);
    if (plan->size > 1)
        hand_out(&team, PLAN_OUTPUT);
}

static void reduce(struct plan *plan)
{
    struct team team = team_of(plan);
    struct inner across = levels_across(&team.levels, RONDO_REDUCE, CHANNEL_ACROSS, team.rail);
    enum plan_buffer kept = plan->rank == plan->root ? PLAN_OUTPUT : PLAN_SCRATCH;

    plan_shape(plan, 1, 1, plan->groups->rails > 1);
    sum_inside(&team, kept);
    across.finish = true;
    if (team.leads && team.levels.across)
        add_part(&team, &across, team.levels.inside ? kept : PLAN_INPUT, PLAN_OUTPUT);
}

static void broadcast(struct plan *plan)
{
    struct team team = team_of(plan);
    struct inner across = levels_across(&team.levels, RONDO_BROADCAST, CHANNEL_ACROSS, team.rail);

    plan_shape(plan, 1, 1, 0);
    if (team.levels.recipe == &few)
        across.algorithm = &direct_algorithm;
    if (team.leads && team.levels.across)
        add_part(&team, &across, PLAN_INPUT, PLAN_OUTPUT);
    hand_out(&team, team.levels.across ? PLAN_OUTPUT : PLAN_INPUT);
}

enum {
    BALANCED = PROMISE_BALANCED, /* where groups are aligned */
    ORDERED = PROMISE_RANK_ORDER /* where they are runs */
};

const struct algorithm leaders_algorithm = {
    .name = "leaders",
    .summary = "Two levels for short vectors: one rank of each group speaks for it.",
    .levels = true,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE,
                                  "2 rounds inside, 1 across groups (of more than 8: 2 log2 g "
                                  "steps), with the whole vector",
                                  .recipe = &few, .runs = ORDERED, .aligned = BALANCED},
            [RONDO_REDUCE] = {reduce, PROMISE_IN_PLACE,
                              "1 round inside, 1 across groups (of more than 8: log2 g steps), "
                              "with the whole vector",
                              .recipe = &few, .runs = ORDERED, .aligned = BALANCED},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE,
                                 "1 round across groups (of more than 8: log2 g steps), 1 inside, "
                                 "with the whole vector",
                                 .recipe = &few},
        },
};
