/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halving.c - recursive halving, then doubling: each exchange is half as long as the one before.
 *
 * Two partners share the work of what both have: each sends the half that is the other's and adds
 * the half that is its own. 4 ranks, the vector in 4 chunks:
 *
 *     rank 0 and 1    chunks 0 1 | 2 3     0 adds the first two, 1 the last two (of 2 ranks)
 *     rank 0 and 2    chunk  0 | 1         0 adds the first, 2 the second (now of all 4)
 *     and back        each returns what it has, until everybody has everything
 *
 * reduce_scatter shares blocks instead: in the round of distance D member v keeps the blocks whose
 * owners agree with it in the lowest bits up to D. Ranks beyond a power of two are guests (core.h).
 *
 * Invariant: partners hold sums over neighbouring runs of ranks, and add the lower run first.
 * Cost: 2 log2 n steps, 2(n-1)/n of the vector sent: few steps and little traffic; guests pay more.
 */
#include "collectives/algorithm.h"
#include "collectives/core.h"
#include "collectives/operands.h"

enum { CHANNEL = 0 };

/* Two sources, lower ranks first: `mine`, and the message from a peer. */
static struct plan_list in_order(const struct plan *plan, struct plan_operand mine, int peer,
                                 struct plan_operand sources[2])
{
    bool first = plan->rank < peer;

    sources[first ? 0 : 1] = mine;
    sources[first ? 1 : 0] = plan_slot(peer, CHANNEL);
    return (struct plan_list){2, sources};
}

/* A member knows its raw share, or a sum that is already in its output. */
static struct plan_operand known(const struct plan *plan, bool raw, int first)
{
    return raw ? plan_input(plan, 0, first) : plan_output(plan, 0, first);
}

/* Share `count` chunks with one partner, my half of them with the next, and so on; then back. */
static void exchange(struct plan *plan, const struct core *core, bool raw, int begin, int count)
{
    int distance = core->members / count, half = count / 2;
    int partner = core_rank(core, core->member ^ distance);
    bool upper = core->member & distance;
    int keep = begin + (upper ? half : 0);
    int give = begin + (upper ? 0 : half);
    struct plan_list slot = PLAN_LIST(plan_slot(partner, CHANNEL));
    struct plan_operand sources[2];

    plan_combine(plan, (unsigned)half, 0, PLAN_LIST(known(plan, raw, give)), slot);
    plan_combine(plan, (unsigned)half, half == 1 ? PLAN_FINISH : 0,
                 in_order(plan, known(plan, raw, keep), partner, sources),
                 PLAN_LIST(plan_output(plan, 0, keep)));
    if (half > 1)
        exchange(plan, core, false, keep, half);
    plan_combine(plan, (unsigned)half, 0, PLAN_LIST(plan_output(plan, 0, keep)), slot);
    plan_combine(plan, (unsigned)half, 0, slot, PLAN_LIST(plan_output(plan, 0, give)));
}

/* A guest's vector travels in two messages as long as the members' first ones. */
static void guest_all_reduce(struct plan *plan, const struct core *core)
{
    int half = core->members / 2;
    struct plan_list host = PLAN_LIST(plan_slot(core->host, CHANNEL));

    for (int first = 0; first < core->members; first += half)
        plan_combine(plan, (unsigned)half, 0, PLAN_LIST(plan_input(plan, 0, first)), host);
    for (int first = 0; first < core->members; first += half)
        plan_combine(plan, (unsigned)half, 0, host, PLAN_LIST(plan_output(plan, 0, first)));
}

static void host_all_reduce(struct plan *plan, const struct core *core)
{
    int half = core->members / 2;
    struct plan_operand sources[2];

    for (int first = 0; first < core->members; first += half)
        plan_combine(plan, (unsigned)half, 0,
                     in_order(plan, plan_input(plan, 0, first), core->guest, sources),
                     PLAN_LIST(plan_output(plan, 0, first)));
    exchange(plan, core, false, 0, core->members);
    for (int first = 0; first < core->members; first += half)
        plan_combine(plan, (unsigned)half, 0, PLAN_LIST(plan_output(plan, 0, first)),
                     PLAN_LIST(plan_slot(core->guest, CHANNEL)));
}

/* One rank: the result is a copy. True if that was all. */
static bool alone(struct plan *plan)
{
    if (plan->size > 1)
        return false;
    plan_shape(plan, 1, 1, 0);
    plan_combine(plan, 1, PLAN_FINISH, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
    return true;
}

static void all_reduce(struct plan *plan)
{
    struct core core = core_of(plan);

    if (alone(plan))
        return;
    plan_shape(plan, (unsigned)core.members, (unsigned)core.members / 2, 0);
    if (core.member < 0)
        guest_all_reduce(plan, &core);
    else if (core.guest >= 0)
        host_all_reduce(plan, &core);
    else
        exchange(plan, &core, true, 0, core.members);
}

/* A block is on a member's side if its owner agrees with it in the lowest bits up to `distance`. */
static bool on_side(const struct core *core, int block, int member, int distance)
{
    return ((core_speaker(core, block) ^ member) & (2 * distance - 1)) == 0;
}

/* A member knows its raw share of a block, or a sum that is in its scratch. */
static struct plan_operand partial(const struct plan *plan, bool raw, int block)
{
    return raw ? plan_input(plan, block, 0) : plan_scratch(plan, block, 0);
}

/* Sum of a block over my run of ranks and the partner's: kept, or in the last round delivered. */
static void add_block(struct plan *plan, const struct core *core, struct plan_list sources,
                      int block, bool last)
{
    if (!last) {
        plan_move(plan, 1, 0, sources, PLAN_LIST(plan_scratch(plan, block, 0)));
    } else if (block == plan->rank) {
        plan_move(plan, 1, PLAN_FINISH, sources, PLAN_LIST(plan_output(plan, 0, 0)));
    } else {
        plan_acquire(plan, core->guest, CHANNEL);
        plan_move(plan, 1, PLAN_FINISH, sources, PLAN_LIST(plan_slot(core->guest, CHANNEL)));
        plan_signal(plan, core->guest, CHANNEL, 0);
    }
}

/* One message each way: the blocks on the partner's side out, those on my side in. */
static void share_blocks(struct plan *plan, const struct core *core, bool raw, int distance)
{
    int theirs = core->member ^ distance, partner = core_rank(core, theirs);
    struct plan_operand sources[2];

    plan_acquire(plan, partner, CHANNEL);
    for (int block = 0; block < plan->size; block++)
        if (on_side(core, block, theirs, distance))
            plan_move(plan, 1, 0, PLAN_LIST(partial(plan, raw, block)),
                      PLAN_LIST(plan_slot(partner, CHANNEL)));
    plan_signal(plan, partner, CHANNEL, 0);
    plan_wait(plan, partner, CHANNEL, 0);
    for (int block = 0; block < plan->size; block++)
        if (on_side(core, block, core->member, distance))
            add_block(plan, core, in_order(plan, partial(plan, raw, block), partner, sources),
                      block, 2 * distance == core->members);
    plan_release(plan, partner, CHANNEL);
}

/* The most blocks on one side of the first round, which is at least half of all. */
static int longest_message(const struct core *core)
{
    return core->members / 2 + (core->extra + 1) / 2;
}

/* A guest sends all its blocks, in two messages, and gets one back. */
static void guest_reduce_scatter(struct plan *plan, const struct core *core)
{
    int longest = longest_message(core);

    for (int block = 0; block < plan->size; block++) {
        if (block % longest == 0)
            plan_acquire(plan, core->host, CHANNEL);
        plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, block, 0)),
                  PLAN_LIST(plan_slot(core->host, CHANNEL)));
        if (block % longest == longest - 1 || block == plan->size - 1)
            plan_signal(plan, core->host, CHANNEL, 0);
    }
    plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(core->host, CHANNEL)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
}

static void take_in_guest(struct plan *plan, const struct core *core)
{
    int longest = longest_message(core);
    struct plan_operand sources[2];

    for (int block = 0; block < plan->size; block++) {
        if (block % longest == 0)
            plan_wait(plan, core->guest, CHANNEL, 0);
        plan_move(plan, 1, 0, in_order(plan, plan_input(plan, block, 0), core->guest, sources),
                  PLAN_LIST(plan_scratch(plan, block, 0)));
        if (block % longest == longest - 1 || block == plan->size - 1)
            plan_release(plan, core->guest, CHANNEL);
    }
}

static void reduce_scatter(struct plan *plan)
{
    struct core core = core_of(plan);

    if (alone(plan))
        return;
    plan_shape(plan, 1, (unsigned)longest_message(&core), (unsigned)plan->size);
    if (core.member < 0) {
        guest_reduce_scatter(plan, &core);
        return;
    }
    if (core.guest >= 0)
        take_in_guest(plan, &core);
    for (int distance = 1; distance < core.members; distance *= 2)
        share_blocks(plan, &core, distance == 1 && core.guest < 0, distance);
}

enum { SUMS = PROMISE_RANK_ORDER | PROMISE_IN_PLACE };

const struct algorithm halving_algorithm = {
    .name = "halving",
    .summary = "Recursive halving, then doubling: few steps and little traffic.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, SUMS,
                                  "2 log2 n steps, 2(n-1)/n of the vector sent; if n is no power "
                                  "of two 4 more steps, up to 2 more vectors"},
            [RONDO_REDUCE_SCATTER] = {reduce_scatter, SUMS,
                                      "log2 n steps, n-1 blocks sent; if n is no power of two 3 "
                                      "more steps, up to n more blocks"},
        },
};
