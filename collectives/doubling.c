/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doubling.c - recursive doubling: pairs, then pairs of pairs, exchange all they have.
 *
 *     round 1    0 <> 1   2 <> 3   4 <> 5   6 <> 7     everybody has the sum of 2
 *     round 2    0 <> 2   1 <> 3   4 <> 6   5 <> 7     of 4
 *     round 3    0 <> 4   1 <> 5   2 <> 6   3 <> 7     of all
 *
 * A sum goes into the output and at once into the next partner's slot. Ranks beyond a power of two
 * are guests of a neighbour (core.h). In all_gather every rank sends to the one D to its right all
 * of the min(D, n - D) blocks that this one lacks, in one message; D doubles, and any n works.
 *
 * Invariant of all_reduce: before a round a member has the sum of a run of ranks, and its partner
 * that of the run before or behind it. The lower run is added first: ranks stay in order.
 * Cost: log2 n rounds, each with the whole vector; two more with guests. For short vectors.
 */
#include "collectives/algorithm.h"
#include "collectives/core.h"
#include "collectives/operands.h"

enum { CHANNEL = 0 };

/* Rounds of a member. It sent its share to the first partner; `mine` is what it has. */
static void rounds(struct plan *plan, const struct core *core, struct plan_operand mine)
{
    struct plan_operand output = plan_output(plan, 0, 0);

    for (int distance = 1; distance < core->members; distance *= 2) {
        int partner = core_rank(core, core->member ^ distance);
        int next = core->guest;
        bool last = 2 * distance == core->members;
        struct plan_operand theirs = plan_slot(partner, CHANNEL);
        struct plan_list sources =
            partner > plan->rank ? PLAN_LIST(mine, theirs) : PLAN_LIST(theirs, mine);

        if (!last)
            next = core_rank(core, core->member ^ (2 * distance));
        plan_combine(plan, 1, last ? PLAN_FINISH : 0, sources,
                     next < 0 ? PLAN_LIST(output) : PLAN_LIST(output, plan_slot(next, CHANNEL)));
        mine = output;
    }
}

static void all_reduce(struct plan *plan)
{
    struct core core = core_of(plan);
    struct plan_operand input = plan_input(plan, 0, 0), output = plan_output(plan, 0, 0);
    int first = core_rank(&core, core.member ^ 1);

    plan_shape(plan, 1, 1, 0);
    if (plan->size == 1) {
        plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(input), PLAN_LIST(output));
    } else if (core.member < 0) {
        plan_combine(plan, 1, 0, PLAN_LIST(input), PLAN_LIST(plan_slot(core.host, CHANNEL)));
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(core.host, CHANNEL)), PLAN_LIST(output));
    } else if (core.guest >= 0) {
        plan_combine(plan, 1, 0, PLAN_LIST(input, plan_slot(core.guest, CHANNEL)),
                     PLAN_LIST(output, plan_slot(first, CHANNEL)));
        rounds(plan, &core, output);
    } else {
        plan_combine(plan, 1, 0, PLAN_LIST(input), PLAN_LIST(plan_slot(first, CHANNEL)));
        rounds(plan, &core, input);
    }
}

/* Blocks that a rank `distance` to the left has and I lack. */
static int lacking(int size, int distance)
{
    return distance < size - distance ? distance : size - distance;
}

static void all_gather(struct plan *plan)
{
    int n = plan->size;
    unsigned longest = 1;

    for (int distance = 1; distance < n; distance *= 2)
        if ((int)longest < lacking(n, distance))
            longest = (unsigned)lacking(n, distance);
    plan_shape(plan, 1, longest, 0);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, plan->rank, 0)));
    for (int distance = 1; distance < n; distance *= 2) {
        int right = rank_at(plan, distance), left = rank_at(plan, -distance);
        int blocks = lacking(n, distance);

        plan_acquire(plan, right, CHANNEL);
        for (int i = 0; i < blocks; i++)
            plan_move(plan, 1, 0, PLAN_LIST(plan_output(plan, rank_at(plan, -i), 0)),
                      PLAN_LIST(plan_slot(right, CHANNEL)));
        plan_signal(plan, right, CHANNEL, 0);
        plan_wait(plan, left, CHANNEL, 0);
        for (int i = 0; i < blocks; i++)
            plan_move(plan, 1, 0, PLAN_LIST(plan_slot(left, CHANNEL)),
                      PLAN_LIST(plan_output(plan, rank_at(plan, -distance - i), 0)));
        plan_release(plan, left, CHANNEL);
    }
}

const struct algorithm doubling_algorithm = {
    .name = "doubling",
    .summary = "Recursive doubling: pairs, then pairs of pairs, exchange all they have.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, PROMISE_RANK_ORDER | PROMISE_IN_PLACE,
                                  "log2 n steps with the whole vector, 2 more if n is no power of "
                                  "two"},
            [RONDO_ALL_GATHER] = {all_gather, PROMISE_IN_PLACE,
                                  "ceil(log2 n) steps, each with twice as many blocks"},
        },
};
