/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy_blocks.c - the collectives of whole blocks in two levels. A block goes from group to
 * group on one rail, its owner's first one, so each crosses once to each group that wants it, and
 * all rails are busy:
 *
 *     all_gather       across: rank to its rail in every group; inside: everybody all they have
 *     reduce_scatter   inside: sums of the blocks of my rails; across: to their owners
 *     gather, scatter  across: between a rank and its rail in the root's group; inside: the root
 *     all_to_all       inside: blocks to whoever serves their owner's rail; across: to their owner
 *
 * A rank of the inside *handles* the blocks of its rails: for each rail, of each group the block of
 * the rank whose first rail it is. Handled blocks wait in scratch in that order.
 *
 * Invariant: on a rail, rank g of the subset is in group g, so an inner block g is of group g.
 */
#include "collectives/levels/hierarchy.h"

enum { CHANNEL_FIRST, CHANNEL_SECOND };

/* The most blocks that a rank with others in its group handles. */
static int most_handled(const struct levels *levels)
{
    return levels->groups->rails > 1 ? grouping_most_rails(levels->groups) * levels->count : 1;
}

/* A place for every block that a member of my group handles: in a user's buffer as block `owner`,
 * in scratch one after another. */
static void add_handled(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                        int member)
{
    int end = grouping_first_rail(levels->groups, levels->group, member + 1);
    int number = 0;

    places_next(levels->plan, places);
    for (int rail = grouping_first_rail(levels->groups, levels->group, member); rail < end; rail++)
        for (int g = 0; g < levels->count; g++) {
            int owner = grouping_owner(levels->groups, g, rail);
            int block = buffer == PLAN_SCRATCH ? number : owner;

            if (owner < 0)
                continue;
            places_add(levels->plan, places, (struct place){buffer, block, 0, 1});
            number++;
        }
}

/* The next block is the one of a rail that a group's rank owns, or nothing. `number`: how many
 * blocks I handle before it. */
static void add_owned(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                      int owner, int number)
{
    int block = buffer == PLAN_SCRATCH ? number : owner;

    places_next(levels->plan, places);
    if (owner >= 0)
        places_add(levels->plan, places, (struct place){buffer, block, 0, 1});
}

/* My own block, where a buffer has no other, if it travels on this rail; else nothing. */
static void add_own(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                    int rail)
{
    places_next(levels->plan, places);
    if (rail == levels->rail)
        places_add(levels->plan, places, (struct place){buffer, 0, 0, 1});
}

/* Blocks of one rank each, of which nothing but mine is known: rank g of the subset is me. */
static void add_own_of(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                       int rail)
{
    for (int g = 0; g < levels->count; g++)
        add_own(levels, places, buffer, rail);
}

/* ---- all_gather ------------------------------------------------------------------------------ */

void hierarchy_all_gather(struct plan *plan)
{
    struct levels levels = levels_of(plan);

    plan_shape(plan, 1, (unsigned)most_handled(&levels), 0);
    for (int rail = levels.rail; rail < levels.end && (levels.across || !levels.inside); rail++) {
        struct inner inner = levels_across(&levels, RONDO_ALL_GATHER, CHANNEL_FIRST, rail);

        add_own_of(&levels, &inner.input, PLAN_INPUT, rail);
        for (int g = 0; g < levels.count; g++)
            add_owned(&levels, &inner.output, PLAN_OUTPUT, grouping_owner(levels.groups, g, rail),
                      0);
        compose(plan, &inner);
    }
    if (levels.inside) {
        struct inner inner = levels_inside(&levels, RONDO_ALL_GATHER, CHANNEL_SECOND);

        if (levels.across)
            compose_next_program(plan, CHANNEL_FIRST);
        for (int i = 0; i < levels.members; i++) {
            if (levels.across)
                add_handled(&levels, &inner.input, PLAN_OUTPUT, i);
            else
                add_own(&levels, &inner.input, PLAN_INPUT, levels.rail);
            add_handled(&levels, &inner.output, PLAN_OUTPUT, i);
        }
        compose(plan, &inner);
    }
}

/* ---- reduce_scatter -------------------------------------------------------------------------- */

static void sums_inside(const struct levels *levels)
{
    struct inner inner = levels_inside(levels, RONDO_REDUCE_SCATTER, CHANNEL_FIRST);

    inner.finish = !levels->across;
    for (int i = 0; i < levels->members; i++) {
        add_handled(levels, &inner.input, PLAN_INPUT, i);
        if (levels->across)
            add_handled(levels, &inner.output, PLAN_SCRATCH, i);
        else
            add_own(levels, &inner.output, PLAN_OUTPUT, levels->rail);
    }
    compose(levels->plan, &inner);
}

void hierarchy_reduce_scatter(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    unsigned most = (unsigned)most_handled(&levels);
    int handled = 0;

    plan_shape(plan, 1, most, levels.groups->rails > 1 ? most : 0);
    if (levels.inside || !levels.across)
        sums_inside(&levels);
    for (int rail = levels.rail; levels.across && rail < levels.end; rail++) {
        struct inner inner = levels_across(&levels, RONDO_REDUCE_SCATTER, CHANNEL_SECOND, rail);
        enum plan_buffer from = levels.inside ? PLAN_SCRATCH : PLAN_INPUT;

        inner.finish = true;
        for (int g = 0; g < levels.count; g++) {
            int owner = grouping_owner(levels.groups, g, rail);

            add_owned(&levels, &inner.input, from, owner, handled);
            handled += owner >= 0;
        }
        add_own_of(&levels, &inner.output, PLAN_OUTPUT, rail);
        compose(plan, &inner);
    }
}

/* ---- gather, scatter ------------------------------------------------------------------------- */

/* Says where a rank of the root's group keeps the blocks that it handles; `user`: the root's
 * buffer. */
static enum plan_buffer kept(const struct levels *levels, int rank, enum plan_buffer user)
{
    return rank == levels->plan->root ? user : PLAN_SCRATCH;
}

static void between_root_and_members(const struct levels *levels, rondo_collective collective,
                                     int channel)
{
    bool gathers = collective == RONDO_GATHER;
    enum plan_buffer user = gathers ? PLAN_OUTPUT : PLAN_INPUT;
    struct inner inner = levels_inside(levels, collective, channel);

    for (int i = 0; i < levels->members; i++) {
        enum plan_buffer own = kept(levels, grouping_rank(levels->groups, levels->group, i), user);

        add_handled(levels, gathers ? &inner.output : &inner.input, user, i);
        add_handled(levels, gathers ? &inner.input : &inner.output, own, i);
    }
    compose(levels->plan, &inner);
}

/* All my rails: the blocks of their owners, between them and the root's group. */
static void between_groups(const struct levels *levels, rondo_collective collective, int channel)
{
    bool gathers = collective == RONDO_GATHER;
    enum plan_buffer user = gathers ? PLAN_OUTPUT : PLAN_INPUT;
    enum plan_buffer mine = kept(levels, levels->plan->rank, user);
    int handled = 0;

    for (int rail = levels->rail; rail < levels->end; rail++) {
        struct inner inner = levels_across(levels, collective, channel, rail);

        for (int g = 0; g < levels->count; g++) {
            int owner = grouping_owner(levels->groups, g, rail);

            add_owned(levels, gathers ? &inner.output : &inner.input, mine, owner, handled);
            handled += owner >= 0;
        }
        if (gathers)
            add_own_of(levels, &inner.input, PLAN_INPUT, rail);
        else
            add_own_of(levels, &inner.output, PLAN_OUTPUT, rail);
        compose(levels->plan, &inner);
    }
}

void hierarchy_gather(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    unsigned most = (unsigned)most_handled(&levels);

    plan_shape(plan, 1, most, levels.groups->rails > 1 ? most : 0);
    between_groups(&levels, RONDO_GATHER, CHANNEL_FIRST);
    if (levels.inside && levels.group == levels.root_group)
        between_root_and_members(&levels, RONDO_GATHER, CHANNEL_SECOND);
}

void hierarchy_scatter(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    unsigned most = (unsigned)most_handled(&levels);

    plan_shape(plan, 1, most, levels.groups->rails > 1 ? most : 0);
    if (levels.inside && levels.group == levels.root_group)
        between_root_and_members(&levels, RONDO_SCATTER, CHANNEL_FIRST);
    between_groups(&levels, RONDO_SCATTER, CHANNEL_SECOND);
}

/* ---- all_to_all ------------------------------------------------------------------------------ */

/* Blocks that I handle, in their order: how many; and of the one whose owner is me, its number. */
static int count_handled(const struct levels *levels, int *ret_own)
{
    int count = 0;

    *ret_own = -1;
    for (int rail = levels->rail; rail < levels->end; rail++)
        for (int g = 0; g < levels->count; g++) {
            int owner = grouping_owner(levels->groups, g, rail);

            if (owner == levels->plan->rank)
                *ret_own = count;
            count += owner >= 0;
        }
    return count;
}

/* Inside: from each member the blocks that I handle; those for me are where they belong. */
static void exchange_inside(const struct levels *levels, int handled, int own)
{
    struct inner inner = levels_inside(levels, RONDO_ALL_TO_ALL, CHANNEL_FIRST);

    for (int i = 0; i < levels->members; i++) {
        int rank = grouping_rank(levels->groups, levels->group, i);

        add_handled(levels, &inner.input, PLAN_INPUT, i);
        places_next(levels->plan, &inner.output);
        for (int number = 0; number < handled; number++)
            places_add(levels->plan, &inner.output,
                       number == own ? (struct place){PLAN_OUTPUT, rank, 0, 1}
                                     : (struct place){PLAN_SCRATCH, i * handled + number, 0, 1});
    }
    compose(levels->plan, &inner);
}

/* On a rail: to each group's owner the blocks of all my group for it, and theirs for me. */
static void exchange_across(const struct levels *levels, int rail, int handled, int *number)
{
    struct inner inner = levels_across(levels, RONDO_ALL_TO_ALL, CHANNEL_SECOND, rail);

    for (int g = 0; g < levels->count; g++) {
        bool there = grouping_owner(levels->groups, g, rail) >= 0;
        bool foreign = g != levels->group;

        places_next(levels->plan, &inner.input);
        for (int i = 0; i < levels->members && there && foreign; i++)
            places_add(levels->plan, &inner.input,
                       (struct place){PLAN_SCRATCH, i * handled + *number, 0, 1});
        *number += there;
        places_next(levels->plan, &inner.output);
        for (int i = 0; i < grouping_members(levels->groups, g); i++)
            if (foreign && rail == levels->rail)
                places_add(levels->plan, &inner.output,
                           (struct place){PLAN_OUTPUT, grouping_rank(levels->groups, g, i), 0, 1});
    }
    compose(levels->plan, &inner);
}

/* The most blocks that wait in any rank's scratch. */
static int most_waiting(const struct levels *levels)
{
    int most = 0;

    for (int g = 0; g < levels->count; g++) {
        int members = grouping_members(levels->groups, g);
        int waiting = (levels->groups->rails + members - 1) / members * members * levels->count;

        most = waiting > most ? waiting : most;
    }
    return most;
}

void hierarchy_all_to_all(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    int most = most_handled(&levels), rails = levels.groups->rails;
    int own, handled = count_handled(&levels, &own), number = 0;

    plan_shape(plan, 1, (unsigned)(most > rails ? most : rails),
               levels.across ? (unsigned)most_waiting(&levels) : 0);
    exchange_inside(&levels, handled, own);
    for (int rail = levels.rail; levels.across && rail < levels.end; rail++)
        exchange_across(&levels, rail, handled, &number);
}
