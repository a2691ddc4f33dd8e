/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zero_copy.c - ranks read and write each other's user memory; messages are flags only.
 *
 *     enter    everybody tells everybody where its buffers are      (now peers may touch mine)
 *     work     copy or reduce straight out of the peers' inputs, and for sums into their outputs
 *     leave    whoever touched my memory tells me that it is done   (now I may return)
 *
 * In all_reduce rank j is responsible for chunk j: it adds up chunk j of all inputs, in rank order
 * in one step, and writes the sum into all outputs. Nobody else touches chunk j anywhere, so this
 * works in place. Collectives without sums only pull, remote to local, because memory that is not
 * mapped can still be read across processes.
 *
 * Invariant: memory of a peer is touched only between its address message and my last message to
 * it, or the last of a sender's messages that I give back. All ranks exchange addresses in every
 * collective, so that all know alike whether all memory can be reached, before anything has moved.
 * Cost: 2 rounds of flags; each byte is moved once, where slots move it twice.
 *
 * A message between two ranks is of this kind, too, but nobody answers it, as the link back is that
 * of other messages. The sender says where its input is, and sends an empty message behind it; the
 * receiver gives that one back when it has read the input, for which the sender waits.
 */
#include "collectives/algorithm.h"
#include "collectives/operands.h"

enum { CHANNEL = 0 };

static void notify_peers(struct plan *plan, unsigned flags)
{
    for (int distance = 1; distance < plan->size; distance++)
        plan_notify(plan, rank_at(plan, distance), CHANNEL, flags);
}

static void await_peers(struct plan *plan, unsigned flags)
{
    for (int distance = 1; distance < plan->size; distance++)
        plan_await(plan, rank_at(plan, -distance), CHANNEL, flags);
}

static void enter(struct plan *plan, unsigned parts)
{
    plan_shape(plan, parts, 0, 0);
    notify_peers(plan, PLAN_ADDRESSES);
    await_peers(plan, PLAN_ADDRESSES);
}

static void leave(struct plan *plan)
{
    notify_peers(plan, 0);
    await_peers(plan, 0);
}

/* Leave where only the root's memory was touched, by everybody. */
static void leave_root(struct plan *plan)
{
    if (plan->rank == plan->root)
        await_peers(plan, 0);
    else
        plan_notify(plan, plan->root, CHANNEL, 0);
}

static struct plan_operand input_of(const struct plan *plan, int rank, int block, int first)
{
    return rank == plan->rank ? plan_input(plan, block, first)
                              : plan_peer_input(rank, block, first);
}

static struct plan_operand output_of(const struct plan *plan, int rank, int block, int first)
{
    return rank == plan->rank ? plan_output(plan, block, first)
                              : plan_peer_output(rank, block, first);
}

/* The sum of one atom of all inputs, in rank order. */
static void sum_inputs(struct plan *plan, int block, int first, struct plan_list destinations)
{
    struct operands inputs;

    operands_open(&inputs, plan);
    for (int rank = 0; rank < plan->size; rank++)
        operands_add(&inputs, input_of(plan, rank, block, first));
    plan_combine(plan, 1, PLAN_FINISH | PLAN_BALANCED, operands_list(&inputs), destinations);
    operands_close(&inputs);
}

static void pull(struct plan *plan, struct plan_operand source, int block)
{
    plan_combine(plan, 1, 0, PLAN_LIST(source), PLAN_LIST(plan_output(plan, block, 0)));
}

static void all_reduce(struct plan *plan)
{
    struct operands outputs;

    enter(plan, (unsigned)plan->size);
    operands_open(&outputs, plan);
    for (int distance = 0; distance < plan->size; distance++)
        operands_add(&outputs, output_of(plan, rank_at(plan, distance), 0, plan->rank));
    sum_inputs(plan, 0, plan->rank, operands_list(&outputs));
    operands_close(&outputs);
    leave(plan);
}

static void reduce(struct plan *plan)
{
    enter(plan, (unsigned)plan->size);
    sum_inputs(plan, 0, plan->rank, PLAN_LIST(output_of(plan, plan->root, 0, plan->rank)));
    leave(plan);
}

static void reduce_scatter(struct plan *plan)
{
    enter(plan, 1);
    sum_inputs(plan, plan->rank, 0, PLAN_LIST(plan_output(plan, 0, 0)));
    leave(plan);
}

/* Begins with the own block, then turns: no peer's memory is everybody's first. */
static void all_gather(struct plan *plan)
{
    enter(plan, 1);
    for (int distance = 0; distance < plan->size; distance++) {
        int peer = rank_at(plan, distance);
        pull(plan, input_of(plan, peer, 0, 0), peer);
    }
    leave(plan);
}

static void all_to_all(struct plan *plan)
{
    enter(plan, 1);
    for (int distance = 0; distance < plan->size; distance++) {
        int peer = rank_at(plan, distance);
        pull(plan, input_of(plan, peer, plan->rank, 0), peer);
    }
    leave(plan);
}

static void broadcast(struct plan *plan)
{
    enter(plan, 1);
    pull(plan, input_of(plan, plan->root, 0, 0), 0);
    leave_root(plan);
}

static void scatter(struct plan *plan)
{
    enter(plan, 1);
    pull(plan, input_of(plan, plan->root, plan->rank, 0), 0);
    leave_root(plan);
}

static void gather(struct plan *plan)
{
    enter(plan, 1);
    if (plan->rank != plan->root) {
        plan_await(plan, plan->root, CHANNEL, 0);
        return;
    }
    pull(plan, plan_input(plan, 0, 0), plan->rank);
    for (int distance = 1; distance < plan->size; distance++) {
        int peer = rank_at(plan, distance);
        pull(plan, plan_peer_input(peer, 0, 0), peer);
        plan_notify(plan, peer, CHANNEL, 0);
    }
}

static void send_to(struct plan *plan)
{
    plan_shape(plan, 1, 0, 0);
    plan_notify(plan, plan->root, PLAN_CHANNEL_P2P, PLAN_ADDRESSES);
    plan_notify(plan, plan->root, PLAN_CHANNEL_P2P, 0);
    plan_settle(plan, plan->root, PLAN_CHANNEL_P2P);
}

static void recv_from(struct plan *plan)
{
    plan_shape(plan, 1, 0, 0);
    plan_await(plan, plan->root, PLAN_CHANNEL_P2P, PLAN_ADDRESSES);
    pull(plan, plan_peer_input(plan->root, 0, 0), 0);
    plan_await(plan, plan->root, PLAN_CHANNEL_P2P, 0);
}

enum {
    PULLS = PROMISE_PEER_MEMORY,
    PULLS_IN_PLACE = PROMISE_PEER_MEMORY | PROMISE_IN_PLACE,
    SUMS = PULLS_IN_PLACE | PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND,
};

const struct algorithm zero_copy_algorithm = {
    .name = "zero_copy",
    .summary = "Ranks read and write each other's memory; only flags are sent.",
    .forms =
        {
            [RONDO_ALL_REDUCE] = {all_reduce, SUMS,
                                  "2 rounds of flags, 1/n of all vectors read and written"},
            [RONDO_REDUCE] = {reduce, SUMS, "2 rounds of flags, 1/n of all vectors read"},
            [RONDO_BROADCAST] = {broadcast, PULLS_IN_PLACE,
                                 "2 rounds of flags, the vector read once by each rank"},
            [RONDO_ALL_GATHER] = {all_gather, PULLS_IN_PLACE, "2 rounds of flags, n blocks read"},
            [RONDO_REDUCE_SCATTER] = {reduce_scatter, SUMS, "2 rounds of flags, n blocks read"},
            [RONDO_ALL_TO_ALL] = {all_to_all, PULLS, "2 rounds of flags, n blocks read"},
            [RONDO_GATHER] = {gather, PULLS_IN_PLACE, "2 rounds of flags, the root reads n blocks"},
            [RONDO_SCATTER] = {scatter, PULLS_IN_PLACE,
                               "2 rounds of flags, each rank reads its block"},
            [RONDO_SEND] = {send_to, PULLS_IN_PLACE, "2 flags, the receiver reads the message"},
            [RONDO_RECV] = {recv_from, PULLS_IN_PLACE, "2 flags, the message read once"},
        },
};
