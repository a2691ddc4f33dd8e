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
#include "collectives/cost.h"
#include "collectives/hierarchy.h"
#include "collectives/hierarchy_cost.h"

#include <math.h>

enum { LANE_IN = 0, LANE_ACROSS = 1, LANE_OUT = 3, FEW_GROUPS = 8 };

extern const struct algorithm direct_algorithm, one_shot_algorithm, binomial_algorithm;

static const struct recipe few = {&one_shot_algorithm, &one_shot_algorithm, .reaches = false};
static const struct recipe many = {&one_shot_algorithm, &binomial_algorithm, .reaches = false};

struct team {
    struct levels levels;
    int rail;   /* of the leaders */
    int leader; /* of my group: its place in there */
    bool leads;
};

static struct team team_of(struct plan *plan)
{
    const struct grouping *groups = plan->groups;
    struct team team = {.levels = levels_of(plan, groups->groups <= FEW_GROUPS ? &few : &many)};
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
    struct inner inner = levels_inside(&team->levels, RONDO_REDUCE, LANE_IN);

    inner.root = team->leader;
    inner.finish = !team->levels.across;
    if (team->levels.inside || !team->levels.across)
        add_part(team, &inner, PLAN_INPUT, result);
}

static void hand_out(const struct team *team, enum plan_buffer from)
{
    struct inner inner = levels_inside(&team->levels, RONDO_BROADCAST, LANE_OUT);

    inner.algorithm = &direct_algorithm;
    inner.root = team->leader;
    if (team->levels.inside || !team->levels.across)
        add_part(team, &inner, from, PLAN_OUTPUT);
}

static void all_reduce(struct plan *plan)
{
    struct team team = team_of(plan);
    struct inner across = levels_across(&team.levels, RONDO_ALL_REDUCE, LANE_ACROSS, team.rail);

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
    struct inner across = levels_across(&team.levels, RONDO_REDUCE, LANE_ACROSS, team.rail);
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
    struct inner across = levels_across(&team.levels, RONDO_BROADCAST, LANE_ACROSS, team.rail);

    plan_shape(plan, 1, 1, 0);
    if (plan->groups->groups <= FEW_GROUPS)
        across.algorithm = &direct_algorithm;
    if (team.leads && team.levels.across)
        add_part(&team, &across, PLAN_INPUT, PLAN_OUTPUT);
    hand_out(&team, team.levels.across ? PLAN_OUTPUT : PLAN_INPUT);
}

/* ---- Costs ----------------------------------------------------------------------------------- */

struct team_size {
    int members, groups;
};

static struct team_size team_in(const struct grouping *groups)
{
    return (struct team_size){groups->rails, groups->groups};
}

static struct team_size team_square(int size)
{
    struct extent extent = extent_of_square(size);

    return (struct team_size){extent.largest, extent.groups};
}

/* Parts: 1 inside before, 2 across, 4 inside after. The leaders do most. */
static void add_cost(struct team_size team, unsigned parts, double bytes, struct cost *ret_cost,
                     struct cost *ret_across)
{
    int m = team.members, g = team.groups;
    double rounds = g <= FEW_GROUPS ? cost_round(g - 1) : cost_doublings(g);
    double windows = cost_windows(bytes), peers = g <= FEW_GROUPS ? g - 1 : cost_doublings(g);
    /* Copied to the members, and by a root to itself; a member copies a vector per part. */
    double out = (m > 1) * m / 2.0 + (parts & 1 ? 0 : 0.5);

    *ret_across = (struct cost){(parts == 7 && g > FEW_GROUPS ? 2 : 1) * rounds * windows,
                                parts & 4 ? (g > 1) * (peers + 1) / 2 * bytes : 0,
                                parts & 1 ? (g > 1) * (peers + 1) * bytes : 0, peers * bytes};
    *ret_cost = *ret_across;
    ret_cost->steps += ((parts & 1) + (parts >> 2)) * cost_round(m - 1) * windows;
    ret_cost->copied += parts & 4 ? out * bytes : 0;
    ret_cost->reduced += parts & 1 ? (m > 1) * m * bytes : 0;
    ret_cost->sent += (m - 1) * bytes;
    if (m > 1)
        ret_cost->copied = fmax(ret_cost->copied, ((parts & 1) + (parts >> 2)) * bytes);
}

#define COSTS(form, parts)                                                                         \
    static void cost_##form(int size, double bytes, struct cost *ret_cost)                         \
    {                                                                                              \
        struct cost across;                                                                        \
                                                                                                   \
        add_cost(team_square(size), parts, bytes, ret_cost, &across);                              \
    }                                                                                              \
    static void cost_in_##form(const struct grouping *groups, double bytes, struct cost *ret_cost, \
                               struct cost *ret_across)                                            \
    {                                                                                              \
        add_cost(team_in(groups), parts, bytes, ret_cost, ret_across);                             \
    }

COSTS(all_reduce, 1 | 2 | 4)
COSTS(reduce, 1 | 2)
COSTS(broadcast, 2 | 4)

static const struct level_form levels[RONDO_COLLECTIVES] = {
    [RONDO_ALL_REDUCE] = {PROMISE_RANK_ORDER, PROMISE_BALANCED, cost_in_all_reduce},
    [RONDO_REDUCE] = {PROMISE_RANK_ORDER, PROMISE_BALANCED, cost_in_reduce},
    [RONDO_BROADCAST] = {0, 0, cost_in_broadcast},
};

const struct algorithm leaders_algorithm = {
    .name = "leaders",
    .summary = "Two levels for short vectors: one rank of each group speaks for it.",
    .levels = levels,
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_IN_PLACE, cost_all_reduce,
                                  "2 rounds inside, 1 across groups (of more than 8: 2 log2 g "
                                  "steps), with the whole vector"},
            [RONDO_REDUCE] = {reduce, PROMISE_IN_PLACE, cost_reduce,
                              "1 round inside, 1 across groups (of more than 8: log2 g steps), "
                              "with the whole vector"},
            [RONDO_BROADCAST] = {broadcast, PROMISE_IN_PLACE, cost_broadcast,
                                 "1 round across groups (of more than 8: log2 g steps), 1 inside, "
                                 "with the whole vector"},
        },
};
