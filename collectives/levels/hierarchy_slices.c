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
 * program: while a segment is on its way between groups the next is summed inside of them. Partial
 * sums wait in the output, or in scratch; there is one scratch, so reduce is one program.
 *
 * Where both levels are `direct`, which has programs of its own, there are five, and no program
 * that sends waits for what its segment brings (^ goes to peers, v comes from them):
 *
 *     ^ slices inside | v sum them, ^ atoms across | v sum, ^ them back | v, ^ slices inside | v
 *
 * So what several segments send to a group leaves together, which is fewer and longer packets.
 *
 * Where peers reach each other's memory, all_reduce needs no slots: the owner of a slice reads it
 * out of the inputs of its group, then out of the outputs of its rail, and finished parts are
 * pulled the same way. What is far is read once by each group, not once by each rank.
 *
 * Invariant: between inside and across, a rank has the slices of its rails, and nobody else of its
 * group has them.
 */
#include "collectives/levels/hierarchy.h"

#include "base/range.h"
#include "collectives/operands.h"

enum { CHANNEL_IN, CHANNEL_ACROSS, CHANNEL_BACK, CHANNEL_OUT };

/* Slices have `parts` atoms; all slices of a rank travel inside of its group in `pieces`
 * messages. */
struct cut {
    int parts, pieces;
};

/*
 * The longest message fills a slot. Inside of a group it carries a piece of all slices of a rank,
 * across groups `atoms`: the more pieces, the more of the vector in a segment, and so in an atom.
 */
static void shape(const struct levels *levels, const struct cut *cut, int atoms, unsigned scratch)
{
    int rails = levels->groups->rails;
    int slices = rails > 1 ? grouping_most_rails(levels->groups) * cut->parts : 1;
    int inside = (slices + cut->pieces - 1) / cut->pieces;

    if (levels->recipe->reaches)
        atoms = inside = 0; /* messages are flags */
    plan_shape(levels->plan, (unsigned)(rails * cut->parts),
               (unsigned)(atoms > inside ? atoms : inside), scratch);
}

/* Finds how an inner plan across groups cuts a slice, and how much of it a message has at most. */
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

/* The next block of `places` is a piece of the slices that a member of my group owns. */
static void add_piece(const struct levels *levels, struct places *places, enum plan_buffer buffer,
                      int member, const struct cut *cut, int piece)
{
    int begin = cut->parts * grouping_first_rail(levels->groups, levels->group, member);
    int end = cut->parts * grouping_first_rail(levels->groups, levels->group, member + 1);
    unsigned pieces = (unsigned)cut->pieces, number = (unsigned)piece;
    int from = (int)range_start((size_t)(end - begin), 1, pieces, number);
    int to = (int)range_start((size_t)(end - begin), 1, pieces, number + 1);

    places_next(levels->plan, places);
    places_add(levels->plan, places, (struct place){buffer, 0, begin + from, to - from});
}

enum { ALL_PARTS = -1 };

static void take_in(const struct levels *levels, struct inner *inner, int part)
{
    if (part == ALL_PARTS)
        compose(levels->plan, inner);
    else
        compose_part(levels->plan, inner, part);
}

/* My group's sum of the slices of my rails, to `result`. */
static void sum_inside(const struct levels *levels, const struct cut *cut, enum plan_buffer result,
                       int part)
{
    for (int piece = 0; piece < cut->pieces; piece++) {
        struct inner inner = levels_inside(levels, RONDO_REDUCE_SCATTER, CHANNEL_IN);

        inner.finish = !levels->across;
        for (int i = 0; i < levels->members; i++) {
            add_piece(levels, &inner.input, PLAN_INPUT, i, cut, piece);
            add_piece(levels, &inner.output, result, i, cut, piece);
        }
        take_in(levels, &inner, part);
    }
}

/* From finished slices of my rails to finished slices of all. */
static void gather_inside(const struct levels *levels, const struct cut *cut, int channel, int part)
{
    for (int piece = 0; piece < cut->pieces; piece++) {
        struct inner inner = levels_inside(levels, RONDO_ALL_GATHER, channel);

        for (int i = 0; i < levels->members; i++) {
            add_piece(levels, &inner.input, PLAN_OUTPUT, i, cut, piece);
            add_piece(levels, &inner.output, PLAN_OUTPUT, i, cut, piece);
        }
        take_in(levels, &inner, part);
    }
}

/* Atom g of a slice is the one that group g finishes. */
static void sum_across(const struct levels *levels, int rail, enum plan_buffer partial)
{
    struct inner inner = levels_across(levels, RONDO_REDUCE_SCATTER, CHANNEL_ACROSS, rail);

    inner.finish = true;
    for (int g = 0; g < levels->count; g++) {
        levels_add_atom(levels, &inner.input, partial, rail * levels->count + g);
        levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * levels->count + g);
    }
    compose(levels->plan, &inner);
}

static void gather_across(const struct levels *levels, int rail)
{
    struct inner inner = levels_across(levels, RONDO_ALL_GATHER, CHANNEL_BACK, rail);

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
        plan_notify(plan, rank_at(plan, distance), CHANNEL_IN, PLAN_ADDRESSES);
    for (int distance = 1; distance < plan->size; distance++)
        plan_await(plan, rank_at(plan, -distance), CHANNEL_IN, PLAN_ADDRESSES);
}

/* The next part is a program of its own, where parts move through slots, a segment at a time. */
static void next_part(const struct levels *levels, int channel)
{
    if (!levels->recipe->reaches)
        compose_next_program(levels->plan, channel);
}

/* No piece without an atom. */
static int pieces_wanted(const struct levels *levels)
{
    int wanted = levels->recipe->reaches ? 1 : levels->groups->cut;

    if (wanted > levels->count)
        wanted = levels->count;
    return wanted > 1 ? wanted : 1;
}

/* One of the programs of `direct` across, over one of my rails. */
static void flow_rail(const struct levels *levels, int rail, int part)
{
    struct inner inner = levels_across(levels, RONDO_ALL_REDUCE, CHANNEL_ACROSS, rail);

    inner.finish = true;
    levels_add_atom(levels, &inner.input, levels->inside ? PLAN_OUTPUT : PLAN_INPUT,
                    rail * levels->count);
    levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * levels->count);
    compose_part(levels->plan, &inner, part);
}

/*
 * A program of `direct` across, rail by rail: each begins when the program before has done as much
 * with its rail, of which it hears on channel `from`, and tells the one behind on channel `to`.
 * (Ranks may meet on several rails, and two messages are all that is sure to fit between them.)
 */
static void flow_across(const struct levels *levels, int part, int from, int to)
{
    struct plan *plan = levels->plan;

    for (int rail = levels->rail; rail < levels->end; rail++) {
        if (from >= 0)
            plan_await(plan, plan->rank, from, 0);
        flow_rail(levels, rail, part);
        if (to >= 0)
            plan_notify(plan, plan->rank, to, 0);
    }
}

/* Five programs, see the top of the file. The last one waits for peers of this host only when it
 * is its turn: they are waited for in another way than those behind a network. */
static void flow(const struct levels *levels, const struct cut *cut)
{
    enum { HAND_OUT, SUM_UP, TAKE, NOBODY = -1 };

    if (levels->inside) {
        sum_inside(levels, cut, PLAN_OUTPUT, HAND_OUT);
        plan_next_program(levels->plan);
        sum_inside(levels, cut, PLAN_OUTPUT, SUM_UP);
    }
    flow_across(levels, HAND_OUT, NOBODY, CHANNEL_IN);
    plan_next_program(levels->plan);
    flow_across(levels, SUM_UP, CHANNEL_IN, CHANNEL_ACROSS);
    plan_next_program(levels->plan);
    flow_across(levels, TAKE, CHANNEL_ACROSS, NOBODY);
    if (levels->inside) {
        plan_notify(levels->plan, levels->plan->rank, CHANNEL_BACK, 0);
        gather_inside(levels, cut, CHANNEL_OUT, 0);
        plan_next_program(levels->plan);
        plan_await(levels->plan, levels->plan->rank, CHANNEL_BACK, 0);
        gather_inside(levels, cut, CHANNEL_OUT, 1);
    }
}

void hierarchy_all_reduce(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    struct cut cut = {.parts = levels.count, .pieces = pieces_wanted(&levels)};

    shape(&levels, &cut, 1, 0);
    if (levels.recipe->flows && levels.across) {
        flow(&levels, &cut);
        return;
    }
    if (levels.recipe->reaches)
        introduce(plan);
    if (levels.inside || !levels.across)
        sum_inside(&levels, &cut, PLAN_OUTPUT, ALL_PARTS);
    if (levels.across) {
        enum plan_buffer partial = levels.inside ? PLAN_OUTPUT : PLAN_INPUT;

        if (levels.inside)
            next_part(&levels, CHANNEL_IN);
        for (int rail = levels.rail; rail < levels.end; rail++)
            sum_across(&levels, rail, partial);
        next_part(&levels, CHANNEL_ACROSS);
        for (int rail = levels.rail; rail < levels.end; rail++)
            gather_across(&levels, rail);
    }
    if (levels.inside) {
        next_part(&levels, CHANNEL_BACK);
        gather_inside(&levels, &cut, CHANNEL_OUT, ALL_PARTS);
    }
}

/* ---- reduce ---------------------------------------------------------------------------------- */

/* Says where a rank keeps slices on the way to the root. */
static enum plan_buffer kept(const struct levels *levels, int rank)
{
    return rank == levels->plan->root ? PLAN_OUTPUT : PLAN_SCRATCH;
}

static void reduce_across(const struct levels *levels, int rail, int parts)
{
    struct inner inner = levels_across(levels, RONDO_REDUCE, CHANNEL_IN, rail);
    enum plan_buffer partial = levels->inside ? kept(levels, levels->plan->rank) : PLAN_INPUT;

    inner.finish = true;
    levels_add_atom(levels, &inner.input, partial, rail * parts);
    levels_add_atom(levels, &inner.output, kept(levels, levels->plan->rank), rail * parts);
    compose(levels->plan, &inner);
}

static void collect_inside(const struct levels *levels, int parts)
{
    struct inner inner = levels_inside(levels, RONDO_GATHER, CHANNEL_IN);

    for (int i = 0; i < levels->members; i++) {
        int rank = grouping_rank(levels->groups, levels->group, i);

        levels_add_slices(levels, &inner.input, kept(levels, rank), i, parts);
        levels_add_slices(levels, &inner.output, PLAN_OUTPUT, i, parts);
    }
    compose(levels->plan, &inner);
}

void hierarchy_reduce(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    struct cut cut = {.pieces = 1};
    int atoms;

    shape_across(&levels, RONDO_REDUCE, &cut.parts, &atoms);
    shape(&levels, &cut, atoms, levels.groups->rails > 1);
    if (levels.inside || !levels.across)
        sum_inside(&levels, &cut, kept(&levels, plan->rank), ALL_PARTS);
    for (int rail = levels.rail; levels.across && rail < levels.end; rail++)
        reduce_across(&levels, rail, cut.parts);
    if (levels.inside && levels.group == levels.root_group)
        collect_inside(&levels, cut.parts);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

/* The root shares the slices out in its group. */
static void share_inside(const struct levels *levels, int parts)
{
    struct inner inner = levels_inside(levels, RONDO_SCATTER, CHANNEL_IN);

    for (int i = 0; i < levels->members; i++) {
        levels_add_slices(levels, &inner.input, PLAN_INPUT, i, parts);
        levels_add_slices(levels, &inner.output, PLAN_OUTPUT, i, parts);
    }
    compose(levels->plan, &inner);
}

static void send_across(const struct levels *levels, int rail, int parts)
{
    struct inner inner = levels_across(levels, RONDO_BROADCAST, CHANNEL_ACROSS, rail);
    enum plan_buffer from = levels->inside ? PLAN_OUTPUT : PLAN_INPUT;

    levels_add_atom(levels, &inner.input, from, rail * parts);
    levels_add_atom(levels, &inner.output, PLAN_OUTPUT, rail * parts);
    compose(levels->plan, &inner);
}

void hierarchy_broadcast(struct plan *plan)
{
    struct levels levels = levels_of(plan);
    bool shares = levels.inside && levels.group == levels.root_group;
    struct cut cut = {.pieces = 1};
    int atoms;

    shape_across(&levels, RONDO_BROADCAST, &cut.parts, &atoms);
    shape(&levels, &cut, atoms, 0);
    if (shares || plan->size == 1)
        share_inside(&levels, cut.parts);
    if (levels.across) {
        if (shares)
            compose_next_program(plan, CHANNEL_IN);
        for (int rail = levels.rail; rail < levels.end; rail++)
            send_across(&levels, rail, cut.parts);
    }
    if (levels.inside) {
        compose_next_program(plan, CHANNEL_ACROSS);
        gather_inside(&levels, &cut, CHANNEL_OUT, ALL_PARTS);
    }
}
