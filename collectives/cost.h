/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.h - the few words that cost functions share.
 *
 * What is counted, per rank and call, for a vector of `bytes`:
 *   steps    messages on the critical path. Messages of one round go to different peers and
 *            overlap, so each one but the first counts for a quarter.
 *   copied   the length of each copy step; and of any step half its length for each destination
 *            beyond the first, which is written but not read again
 *   reduced  a reduce step: its length once per source
 * tests/collectives/test_cost.c counts the same in the plans and compares.
 *
 * Where data passes through ranks one after another, a window at a time, the last rank starts late:
 * the first window's way to it is added. For long vectors that is little, for short ones most.
 * Where ranks wait for each other in every round, each window costs all the steps again.
 */
#ifndef RONDO_COLLECTIVES_COST_H
#define RONDO_COLLECTIVES_COST_H

#include "collectives/algorithm.h"

static const double COST_SLOT = 131072; /* bytes; about what a slot holds */

/* Bytes of a vector's first window. */
static inline double cost_window(double bytes)
{
    return bytes < COST_SLOT ? bytes : COST_SLOT;
}

/* How many windows there are when the longest message would be this long. */
static inline double cost_windows(double message_bytes)
{
    return message_bytes > COST_SLOT ? message_bytes / COST_SLOT : 1.0;
}

/* Steps of a round in which a rank sends, or takes, this many messages. */
static inline double cost_round(int messages)
{
    return messages > 0 ? 1.0 + 0.25 * (messages - 1) : 0.0;
}

/* ceil(log2(size)): how often something doubles until it has reached every rank. */
static inline int cost_doublings(int size)
{
    int doublings = 0;

    while ((size - 1) >> doublings)
        doublings++;
    return doublings;
}

/* (size - 1) / size: the share of a vector that belongs to others. */
static inline double cost_others(int size)
{
    return (double)(size - 1) / size;
}

#endif
