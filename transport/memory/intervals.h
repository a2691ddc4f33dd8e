/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intervals.h - a set of address ranges that is asked "which of you holds this range" and "which
 * of you touch it": an interval tree.
 *
 * A tree by where ranges begin, in which each node also knows how far any range below it reaches,
 * so whole branches are passed over. It is balanced by random priorities (a treap): expected depth
 * O(log n). Nodes belong to the caller, who embeds them; nothing is allocated here.
 */
#ifndef RONDO_TRANSPORT_MEMORY_INTERVALS_H
#define RONDO_TRANSPORT_MEMORY_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
    uint64_t begin, end; /* [begin, end), not empty */
    uint64_t reach;      /* the furthest end in this branch */
    uint64_t priority;   /* above those of both branches */
    struct interval *left, *right;
};

struct intervals {
    struct interval *root;
    uint64_t seed;
};

/* Ranges may overlap and be equal. */
void intervals_add(struct intervals *set, struct interval *interval);
/* Remove an interval, which must be in the set. */
void intervals_remove(struct intervals *set, struct interval *interval);
/* One that has all of [begin, end) in it and that `fits`; NULL: there is none. */
struct interval *intervals_holding(const struct intervals *set, uint64_t begin, uint64_t end,
                                   bool (*fits)(const struct interval *interval,
                                                const void *context),
                                   const void *context);
/* One that shares a byte with [begin, end); NULL: none does. */
struct interval *intervals_touching(const struct intervals *set, uint64_t begin, uint64_t end);

#endif
