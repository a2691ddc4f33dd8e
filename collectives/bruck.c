/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bruck.c - all_to_all in ceil(log2 n) rounds: blocks travel together, and get off on the way.
 *
 * Number a rank's blocks by how far to the right they have to go: block i is for rank + i. In round
 * k every rank passes all blocks whose number has bit k to the rank that is 2^k to its right, in
 * one message, and takes as many from its left; they keep their numbers. Block 5 = 4 + 1 of rank 0:
 *
 *     round 0    0 -> 1      with blocks 1, 3, 5, 7, ...
 *     round 1                5 has no bit 1, it stays
 *     round 2    1 -> 5      with blocks 4, 5, 6, 7, ...    and it has arrived
 *
 * A block leaves the input in the round of its lowest bit, goes through scratch, and comes to the
 * output in that of its highest.
 *
 * Invariant: before round k, block i of rank r is the one that rank r - (i mod 2^k) began with.
 * Cost: ceil(log2 n) rounds, each with about half of the vector: few messages, for short blocks of
 * many ranks. Robert Bruck and others, 1997.
 */
#include "collectives/algorithm.h"
#include "collectives/operands.h"

enum { CHANNEL = 0 };

static int lowest_bit(int number)
{
    return number & -number;
}

static int highest_bit(int number)
{
    int bit = 1;

    while (bit <= number / 2)
        bit *= 2;
    return bit;
}

/* Returns where block i lies before the round of `bit`. */
static struct plan_operand place_before(const struct plan *plan, int i, int bit)
{
    return bit == lowest_bit(i) ? plan_input(plan, rank_at(plan, i), 0) : plan_scratch(plan, i, 0);
}

static struct plan_operand place_at_end(const struct plan *plan, int i)
{
    return plan_output(plan, rank_at(plan, -i), 0);
}

/* True if block i has to wait in scratch until all rounds are over: in place, its place at the end
 * is that of block n - i, which may not have left by then. */
static bool waits(const struct plan *plan, int i)
{
    return lowest_bit(plan->size - i) > highest_bit(i);
}

static struct plan_operand place_after(const struct plan *plan, int i, int bit)
{
    return bit < highest_bit(i) || waits(plan, i) ? plan_scratch(plan, i, 0)
                                                  : place_at_end(plan, i);
}

static int blocks_with(int size, int bit)
{
    int count = 0;

    for (int i = 1; i < size; i++)
        count += (i & bit) != 0;
    return count;
}

static void exchange(struct plan *plan, int bit)
{
    int right = rank_at(plan, bit), left = rank_at(plan, -bit);

    plan_acquire(plan, right, CHANNEL);
    for (int i = bit; i < plan->size; i++)
        if (i & bit)
            plan_move(plan, 1, 0, PLAN_LIST(place_before(plan, i, bit)),
                      PLAN_LIST(plan_slot(right, CHANNEL)));
    plan_signal(plan, right, CHANNEL, 0);
    plan_wait(plan, left, CHANNEL, 0);
    for (int i = bit; i < plan->size; i++)
        if (i & bit)
            plan_move(plan, 1, 0, PLAN_LIST(plan_slot(left, CHANNEL)),
                      PLAN_LIST(place_after(plan, i, bit)));
    plan_release(plan, left, CHANNEL);
}

static void all_to_all(struct plan *plan)
{
    int n = plan->size, longest = 1;

    for (int bit = 1; bit < n; bit *= 2)
        longest = blocks_with(n, bit) > longest ? blocks_with(n, bit) : longest;
    plan_shape(plan, 1, (unsigned)longest, (unsigned)n);
    plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, plan->rank, 0)),
                 PLAN_LIST(plan_output(plan, plan->rank, 0)));
    for (int bit = 1; bit < n; bit *= 2)
        exchange(plan, bit);
    for (int i = 1; i < n; i++)
        if (waits(plan, i))
            plan_combine(plan, 1, 0, PLAN_LIST(plan_scratch(plan, i, 0)),
                         PLAN_LIST(place_at_end(plan, i)));
}

const struct algorithm bruck_algorithm = {
    .name = "bruck",
    .summary = "Blocks for far ranks travel together and get off on the way; few messages.",
    .forms =
        {
            [RONDO_ALL_TO_ALL] = {all_to_all, PROMISE_IN_PLACE,
                                  "ceil(log2 n) steps, each with about half of the vector"},
        },
};
