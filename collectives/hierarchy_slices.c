/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hierarchy_slices.c - all_reduce, reduce and broadcast in two levels: the vector is cut into as
 * many slices as there are rails, and each rail carries its own from group to group.
 *
 * All-reduce of groups {0, 1} and {2, 3}, two slices:
 *
 *     inside   reduce_scatter   rank 0 has slice 0 of its group's sum, rank 1 slice 1; 2 and 3 too
 *     across   all_reduce       0 and 2 add up slice 0, 1 and 3 slice 1: all rails busy
 *     inside   all_gather       everybody has both slices
 *
 * The all_reduce across is a reduce_scatter and an all_gather as well. Each of the four parts is a
 * program: while a window is on its way between groups the next is summed inside of them. Partial
 * sums wait in the output, or in scratch; there is one scratch, so reduce is one program.
 *
 * Where peers reach each other's memory, all_reduce needs no slots: the owner of a slice reads it
 * out of the inputs of its group, then out of the outputs of its rail, and finished parts are
 * pulled the same way. What is far is read once by each group, not once by each rank.
 *
 * Invariant: between inside and across, a rank has the slices of its rails, and nobody else of its
 * group has them.
 */
#include "collectives/hierarchy.h"
#include "collectives/operands.h"

enum { LANE_IN, LANE_ACROSS, LANE_BACK, LANE_OUT };

/*
 * Slices have `parts` atoms. Messages inside of a group carry all slices of a rank; those across
 * groups carry `atoms`.
 */
static void shape(const struct levels *levels, int parts, int atoms, unsigned scratch)
{
    int rails = levels->groups->rails;
    int inside = rails > 1 ? grouping_most_rails(levels->groups) * parts : 1;

    if (levels->recipe->reaches)
        atoms = inside = 0; /* messages are flags */
    plan_shape(levels->plan, (unsigned)(rails * parts), (unsigned)(atoms > inside ? atoms : inside),
               scratch);
}

/* How an inner plan across cuts a slice, and the most of it in a message. */
static void shape_across(const struct levels *levels, rondo_collective collective, int *ret_parts,
                         int *ret_atoms)
{
    struct plan *inner = NULL;

    *ret_parts = *ret_atoms = 1;
    if (!levels->across)
        return;
    if (algorithm_plan(levels->recipe->across, collective, levels->count, levels->group,
                       levels->root_group, &inner)) {
        levels->plan->out_of_memory = true;
        return;
    }
    *ret_parts = (int)inner->parts;
    *ret_atoms = (int)inner->message_atoms;
    plan_close(inner);
}

/* ---- all_reduce ------------------------------------------------------------------------------ */

/* My group's sum of the slices of my rails, to `result`. */
static void sum_inside(const struct levels *levels, int parts, enum plan_buffer result)
{
    struct inner inner = levels_inside(levels, RONDO_REDUCE_SCATTER, LANE_IN);

    inner.finish = !levels->across;
    for (int i = 0; i < levels->members; i++) {
        levels_add_slices(levels, &inner.input, PLAN_INPUT, i, parts);
        levels_add_slices(levels, &inner.output, result, i, parts);
    }
    compose(levels->plan, &inner);
}

/* From finished slices of my rails to finished slices of all. */
static void gather_inside(const struct levels *levels, int parts, int lane)
{
    struct inner inner = levels_inside(levels, RONDO_ALL_GATHER, lane);

    for (int i = 0; i < levels->members; i++) {
        levels_add_slices(levels, &inner.input, PLAN_OUTPUT, i, parts);
        levels_add_slices(levels, &inner.output, PLAN_OUTPUT, i, parts);
    }
    compose(levels->plan, &inner);
}

/* Atom g of a slice is the one that group g finishes. */
static void sum_across(const struct levels *levels, int rail, enum plan_buffer partial)
{
    struct inner inner = levels_across(levels, RONDO_REDUCE_SCATTER, LANE_ACROSS, rail);

    inner.finish = true;
    for (int g = 0; g < levels->count; g++) {
        levels_add_atom(levels, &inner.input, partial, rail * levels->count + g);
        levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * levels->count + g);
    }
    compose(levels->plan, &inner);
}

static void gather_across(const struct levels *levels, int rail)
{
    struct inner inner = levels_across(levels, RONDO_ALL_GATHER, LANE_BACK, rail);

    for (int g = 0; g < levels->count; g++) {
        levels_add_atom(levels, &inner.input, PLAN_OUTPUT, rail * levels->count + g);
        levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * levels->count + g);
    }
    compose(levels->plan, &inner);
}

/* Everybody tells everybody where its buffers are, before anybody touches them. */
static void introduce(struct plan *plan)
{
    for (int distance = 1; distance < plan->size; distance++)
        plan_notify(plan, rank_at(plan, distance), LANE_IN, PLAN_ADDRESSES);
    for (int distance = 1; distance < plan->size; distance++)
        plan_await(plan, rank_at(plan, -distance), LANE_IN, PLAN_ADDRESSES);
}

/* The next part is a program of its own, where parts move through slots, a window at a time. */
static void next_part(const struct levels *levels, int lane)
{
    if (!levels->recipe->reaches)
        compose_next_program(levels->plan, lane);
}

void hierarchy_all_reduce(struct plan *plan, const struct recipe *recipe)
{
    struct levels levels = levels_of(plan, recipe);
    int parts = levels.count; /* of a slice */

    shape(&levels, parts, 1, 0);
    if (recipe->reaches)
        introduce(plan);
    if (levels.inside || !levels.across)
        sum_inside(&levels, parts, PLAN_OUTPUT);
    if (levels.across) {
        enum plan_buffer partial = levels.inside ? PLAN_OUTPUT : PLAN_INPUT;

        if (levels.inside)
            next_part(&levels, LANE_IN);
        for (int rail = levels.rail; rail < levels.end; rail++)
            sum_across(&levels, rail, partial);
        next_part(&levels, LANE_ACROSS);
        for (int rail = levels.rail; rail < levels.end; rail++)
            gather_across(&levels, rail);
    }
    if (levels.inside) {
        next_part(&levels, LANE_BACK);
        gather_inside(&levels, parts, LANE_OUT);
    }
}

/* ---- reduce ---------------------------------------------------------------------------------- */

/* Where a rank keeps slices on the way to the root. */
static enum plan_buffer kept(const struct levels *levels, int rank)
{
    return rank == levels->plan->root ? PLAN_OUTPUT : PLAN_SCRATCH;
}

static void reduce_across(const struct levels *levels, int rail, int parts)
{
    struct inner inner = levels_across(levels, RONDO_REDUCE, LANE_IN, rail);
    enum plan_buffer partial = levels->inside ? kept(levels, levels->plan->rank) : PLAN_INPUT;

    inner.finish = true;
    levels_add_atom(levels, &inner.input, partial, rail * parts);
    levels_add_atom(levels, &inner.output, kept(levels, levels->plan->rank), rail * parts);
    compose(levels->plan, &inner);
}

static void collect_inside(const struct levels *levels, int parts)
{
    struct inner inner = levels_inside(levels, RONDO_GATHER, LANE_IN);

    for (int i = 0; i < levels->members; i++) {
        int rank = grouping_rank(levels->groups, levels->group, i);

        levels_add_slices(levels, &inner.input, kept(levels, rank), i, parts);
        levels_add_slices(levels, &inner.output, PLAN_OUTPUT, i, parts);
    }
    compose(levels->plan, &inner);
}

void hierarchy_reduce(struct plan *plan, const struct recipe *recipe)
{
    struct levels levels = levels_of(plan, recipe);
    int parts, atoms;

    shape_across(&levels, RONDO_REDUCE, &parts, &atoms);
    shape(&levels, parts, atoms, levels.groups->rails > 1);
    if (levels.inside || !levels.across)
        sum_inside(&levels, parts, kept(&levels, plan->rank));
    for (int rail = levels.rail; levels.across && rail < levels.end; rail++)
        reduce_across(&levels, rail, parts);
    if (levels.inside && levels.group == levels.root_group)
        collect_inside(&levels, parts);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

/* The root shares the slices out in its group. */
static void share_inside(const struct levels *levels, int parts)
{
    struct inner inner = levels_inside(levels, RONDO_SCATTER, LANE_IN);

    for (int i = 0; i < levels->members; i++) {
        levels_add_slices(levels, &inner.input, PLAN_INPUT, i, parts);
        levels_add_slices(levels, &inner.output, PLAN_OUTPUT, i, parts);
    }
    compose(levels->plan, &inner);
}

static void send_across(const struct levels *levels, int rail, int parts)
{
    struct inner inner = levels_across(levels, RONDO_BROADCAST, LANE_ACROSS, rail);
    enum plan_buffer from = levels->inside ? PLAN_OUTPUT : PLAN_INPUT;

    levels_add_atom(levels, &inner.input, from, rail * parts);
    levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * parts);
    compose(levels->plan, &inner);
}

void hierarchy_broadcast(struct plan *plan, const struct recipe *recipe)
{
    struct levels levels = levels_of(plan, recipe);
    bool shares = levels.inside && levels.group == levels.root_group;
    int parts, atoms;

    shape_across(&levels, RONDO_BROADCAST, &parts, &atoms);
    shape(&levels, parts, atoms, 0);
    if (shares || plan->size == 1)
        share_inside(&levels, parts);
    if (levels.across) {
        if (shares)
            compose_next_program(plan, LANE_IN);
        for (int rail = levels.rail; rail < levels.end; rail++)
            send_across(&levels, rail, parts);
    }
    if (levels.inside) {
        compose_next_program(plan, LANE_ACROSS);
        gather_inside(&levels, parts, LANE_OUT);
    }
}
