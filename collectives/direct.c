/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.c - every rank talks to every other one, without relays; every collective has this form.
 *
 * The two-shot all_reduce gives each rank one chunk of the vector to be responsible for:
 *
 *     shot 1   everybody sends chunk j to rank j, which adds all n of them up in one step
 *     shot 2   rank j sends the finished chunk to everybody
 *
 * Because the sum is one step, it is associated as the balanced tree over ranks whatever the size,
 * and narrow floats are rounded once. reduce_scatter is shot 1 alone; reduce sends the finished
 * chunks to the root only.
 *
 * Invariant: a rank has at most two messages under way to a peer, and takes what its peers sent in
 * a shot before it sends in the next, so two slots are enough. Each begins with the peer behind
 * itself: no peer is everybody's first.
 * Cost: 2 rounds and 2(n-1)/n of the vector out of each rank.
 */
#include "collectives/algorithm.h"
#include "collectives/operands.h"

/* An all_reduce has channels of its own: its ranks wait for each other in every call, so slots that
 * let them run ahead are of no use to it, and cost cache where ranks share cores. */
enum { CHANNEL = 0, CHANNEL_BACK = 1, CHANNEL_ALL = PLAN_CHANNEL_SHALLOW, CHANNEL_ALL_BACK };

/* Chunk (or block) j to rank j. */
static void hand_out(struct plan *plan, int channel,
                     struct plan_operand (*piece)(const struct plan *plan, int j))
{
    for (int distance = 1; distance < plan->size; distance++) {
        int peer = rank_at(plan, distance);
        plan_combine(plan, 1, 0, PLAN_LIST(piece(plan, peer)), PLAN_LIST(plan_slot(peer, channel)));
    }
}

/* Mine, summed over all ranks, to `destinations`. */
static void sum_up(struct plan *plan, int channel,
                   struct plan_operand (*piece)(const struct plan *plan, int j),
                   struct plan_list destinations)
{
    struct operands sources;

    operands_open(&sources, plan);
    operands_add_ranks(&sources, plan, channel, piece(plan, plan->rank));
    plan_combine(plan, 1, PLAN_FINISH | PLAN_BALANCED, operands_list(&sources), destinations);
    operands_close(&sources);
}

static struct plan_operand chunk(const struct plan *plan, int j)
{
    return plan_input(plan, 0, j);
}

static struct plan_operand block(const struct plan *plan, int j)
{
    return plan_input(plan, j, 0);
}

static void take_slices(struct plan *plan, int channel)
{
    for (int distance = 1; distance < plan->size; distance++) {
        int peer = rank_at(plan, -distance);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(peer, channel)),
                     PLAN_LIST(plan_output(plan, 0, peer)));
    }
}

static void all_reduce(struct plan *plan)
{
    struct operands destinations;

    plan_shape(plan, (unsigned)plan->size, 1, 0);
    operands_open(&destinations, plan);
    operands_add(&destinations, plan_output(plan, 0, plan->rank));
    operands_add_peers(&destinations, plan, CHANNEL_ALL_BACK);
    hand_out(plan, CHANNEL_ALL, chunk);
    plan_next_program(plan);
    sum_up(plan, CHANNEL_ALL, chunk, operands_list(&destinations));
    operands_close(&destinations);
    plan_next_program(plan);
    take_slices(plan, CHANNEL_ALL_BACK);
}

static void reduce(struct plan *plan)
{
    plan_shape(plan, (unsigned)plan->size, 1, 0);
    if (plan->rank != plan->root) {
        hand_out(plan, CHANNEL, chunk);
        plan_next_program(plan);
        sum_up(plan, CHANNEL, chunk, PLAN_LIST(plan_slot(plan->root, CHANNEL_BACK)));
        return;
    }
    hand_out(plan, CHANNEL, chunk);
    plan_next_program(plan);
    sum_up(plan, CHANNEL, chunk, PLAN_LIST(plan_output(plan, 0, plan->rank)));
    plan_next_program(plan);
    take_slices(plan, CHANNEL_BACK);
}

static void reduce_scatter(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    hand_out(plan, CHANNEL, block);
    plan_next_program(plan);
    sum_up(plan, CHANNEL, block, PLAN_LIST(plan_output(plan, 0, 0)));
}

/* My input to all peers and to my own output. */
static void to_everybody(struct plan *plan, struct plan_operand own)
{
    struct operands destinations;

    operands_open(&destinations, plan);
    operands_add(&destinations, own);
    operands_add_peers(&destinations, plan, CHANNEL);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)), operands_list(&destinations));
    operands_close(&destinations);
}

/* A block from every peer. */
static void from_everybody(struct plan *plan)
{
    for (int distance = 1; distance < plan->size; distance++) {
        int peer = rank_at(plan, -distance);
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(peer, CHANNEL)),
                     PLAN_LIST(plan_output(plan, peer, 0)));
    }
}

static void all_gather(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    to_everybody(plan, plan_output(plan, plan->rank, 0));
    plan_next_program(plan);
    from_everybody(plan);
}

static void broadcast(struct plan *plan)
{
    struct plan_operand output = plan_output(plan, 0, 0);

    plan_shape(plan, 1, 1, 0);
    if (plan->rank == plan->root)
        to_everybody(plan, output);
    else
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(plan->root, CHANNEL)), PLAN_LIST(output));
}

/*
 * All blocks leave before the first one is waited for: where ranks share cores each waits once, not
 * once per peer. A block is sent before its place is overwritten, so this works in place too.
 */
static void all_to_all(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    hand_out(plan, CHANNEL, block);
    plan_combine(plan, 1, 0, PLAN_LIST(block(plan, plan->rank)),
                 PLAN_LIST(plan_output(plan, plan->rank, 0)));
    from_everybody(plan);
}

static void gather(struct plan *plan)
{
    struct plan_operand input = plan_input(plan, 0, 0);

    plan_shape(plan, 1, 1, 0);
    if (plan->rank != plan->root) {
        plan_combine(plan, 1, 0, PLAN_LIST(input), PLAN_LIST(plan_slot(plan->root, CHANNEL)));
        return;
    }
    plan_combine(plan, 1, 0, PLAN_LIST(input), PLAN_LIST(plan_output(plan, plan->rank, 0)));
    from_everybody(plan);
}

static void scatter(struct plan *plan)
{
    struct plan_operand output = plan_output(plan, 0, 0);

    plan_shape(plan, 1, 1, 0);
    if (plan->rank != plan->root) {
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(plan->root, CHANNEL)), PLAN_LIST(output));
        return;
    }
    for (int distance = 1; distance < plan->size; distance++) {
        int peer = rank_at(plan, distance);
        plan_combine(plan, 1, 0, PLAN_LIST(block(plan, peer)), PLAN_LIST(plan_slot(peer, CHANNEL)));
    }
    plan_combine(plan, 1, 0, PLAN_LIST(block(plan, plan->rank)), PLAN_LIST(output));
}

/*
 * Dissemination: in round k a rank tells the one 2^k to the right all it knows; ceil(log2 n) rounds
 * reach everybody.
 */
static void barrier(struct plan *plan)
{
    plan_shape(plan, 1, 0, 0);
    for (int distance = 1; distance < plan->size; distance *= 2) {
        plan_notify(plan, rank_at(plan, distance), CHANNEL, 0);
        plan_await(plan, rank_at(plan, -distance), CHANNEL, 0);
    }
}

/*
 * A send and a receive meet on a channel of their own, so that they never mix with collectives;
 * `root` is the peer.
 */
static void send_to(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, 0)),
                 PLAN_LIST(plan_slot(plan->root, PLAN_CHANNEL_P2P)));
}

static void recv_from(struct plan *plan)
{
    plan_shape(plan, 1, 1, 0);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(plan->root, PLAN_CHANNEL_P2P)),
                 PLAN_LIST(plan_output(plan, 0, 0)));
}

enum {
    SUMS = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND | PROMISE_IN_PLACE,
    COPIES = PROMISE_IN_PLACE,
};

const struct algorithm direct_algorithm = {
    .name = "direct",
    .summary =
        "Every rank talks to every other one, and is responsible for one chunk of the vector.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, SUMS,
                                  "2 rounds of n-1 messages, 2(n-1)/n of the vector sent"},
            [RONDO_REDUCE] = {reduce, SUMS, "2 rounds of n-1 messages, the vector sent once"},
            [RONDO_BROADCAST] = {broadcast, COPIES, "1 round, the root sends n-1 vectors"},
            [RONDO_ALL_GATHER] = {all_gather, COPIES, "1 round of n-1 messages, n-1 blocks sent"},
            [RONDO_REDUCE_SCATTER] = {reduce_scatter, SUMS,
                                      "1 round of n-1 messages, n-1 blocks sent"},
            [RONDO_ALL_TO_ALL] = {all_to_all, COPIES, "1 round of n-1 messages, n-1 blocks sent"},
            [RONDO_GATHER] = {gather, COPIES, "1 round, the root takes n-1 blocks"},
            [RONDO_SCATTER] = {scatter, COPIES, "1 round, the root sends n-1 blocks"},
            [RONDO_BARRIER] = {barrier, COPIES, "ceil(log2 n) rounds of empty messages"},
            [RONDO_SEND] = {send_to, COPIES, "1 message"},
            [RONDO_RECV] = {recv_from, COPIES, "1 message"},
        },
};
