/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.h - what a call costs, counted in the plans that run.
 *
 * The plans of a few ranks are written, counted (tally.h), and not kept; which ranks these are is
 * the same on every rank, and so are the numbers. They hold for any length of a call:
 *
 *   steps    messages on the critical path, one after another
 *   copied   the length of each copy step; and of any step half its length for each destination
 *            beyond the first, which is written but not read again
 *   reduced  the length of each reduce step, once per source
 *   sent     what the busiest rank sends, or takes if that is more
 *   all_...  what all ranks copy and reduce, if the ones that are read stand for the others; so
 *            they do where a root does much and the others do alike
 *
 * Ranks that wait for each other in every round pay the steps again for each segment. Where
 * segments follow each other through ranks, the last rank starts late instead: what the others do
 * to the first segment is added. For long vectors that is little, for short ones most.
 *
 * One thing can't be seen in the plans of a few ranks: how many others stand between the first and
 * the last. That is the `way` of a form (algorithm.h).
 */
#ifndef RONDO_COLLECTIVES_SELECT_COST_H
#define RONDO_COLLECTIVES_SELECT_COST_H

#include "collectives/algorithm.h"

enum { COST_SLOT = 131072 }; /* bytes; about what a slot holds: longer messages make segments */

/*
 * Cost of one call on one rank, the critical path:
 * time = steps * latency + copied / copy_bw + reduced / reduce_bw
 */
struct cost {
    double steps;
    double copied, reduced, sent;   /* bytes */
    double all_copied, all_reduced; /* by all ranks together */
};

struct count_steps {
    double steps;
    double message; /* the longest; 0: messages are flags */
    bool once;      /* segments follow each other: steps are waited for once */
};

/* A count says what a form does among so many ranks. Lengths are parts of a call's bytes. */
struct count {
    struct count_steps near, far; /* far: from group to group, in plans of two levels */
    double message;               /* the longest that a plan may have: it makes the segments */
    double copied, reduced, sent;
    double all_copied, all_reduced;
    double copied_before, reduced_before; /* of the first segment, by others on its way */
    double relayed;                       /* copied by one more rank, before all can be copied on */
    double sent_far;                      /* by all ranks of a group to other groups */
};

/* A subject is what is counted: a form among so many ranks. */
struct cost_subject {
    const struct algorithm *algorithm;
    rondo_collective collective;
    int size;
    const struct grouping *groups; /* of an algorithm in two levels; NULL: grouping_square() */
};

/* Counts that were made before, of one communicator. Begins with zeros. */
struct counts {
    struct count_entry *entries;
};
void counts_done(struct counts *counts);

/* Count these ranks themselves, however many there are; and, where they are many, count fewer. */
rondo_result cost_count_plans(const struct cost_subject *subject, struct count *ret_count);
rondo_result cost_count_many(const struct cost_subject *subject, struct count *ret_count);
/* Carries three counts, each of twice as many ranks as the one before, on by more doublings. */
void cost_go_on(const struct count samples[3], int doublings, struct count *ret_count);

/* All numbers of a count. */
enum { COUNT_NUMBERS = 14 };
void count_numbers(struct count *count, double *numbers[COUNT_NUMBERS]);

/* Count as cost_count_many(), or find in `counts`, which may be NULL. */
rondo_result cost_count(const struct cost_subject *subject, struct counts *counts,
                        struct count *ret_count);
/*
 * The cost of a call of so many bytes; *ret_far: the part of it from group to group, where `sent`
 * is what all ranks of a group send.
 */
void cost_of(const struct count *count, double bytes, struct cost *ret_cost, struct cost *ret_far);

#endif
