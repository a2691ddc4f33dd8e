/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithm.h - what an algorithm is: a name, a writer of plans per collective, what its plans
 * promise, what it costs. A new algorithm is one file that defines a `struct algorithm`, and one
 * line in algorithms.c.
 */
#ifndef RONDO_COLLECTIVES_ALGORITHM_H
#define RONDO_COLLECTIVES_ALGORITHM_H

#include "collectives/grouping.h"
#include "plan/plan.h"

/* What the plans of a form promise; plan/verify/verify.c proves each claim. */
enum promise {
    PROMISE_BALANCED = 1,   /* sums associate as KERNEL_BALANCED over ranks 0..n-1: deterministic */
    PROMISE_RANK_ORDER = 2, /* operands keep rank order: for operations that do not commute */
    PROMISE_ONE_ROUND = 4,  /* each result is one reduce step: narrow floats are rounded once */
    PROMISE_IN_PLACE = 8,   /* also right when input and output are the same memory (rondo.h) */
    PROMISE_PEER_MEMORY = 16, /* touches user buffers of peers: needs memory that they can map */
};

/*
 * Cost of one call on one rank, the critical path:
 * time = steps * latency + copied / copy_bw + reduced / reduce_bw
 */
struct cost {
    double steps;   /* messages, one after another */
    double copied;  /* bytes copied by a rank, into slots and out of them */
    double reduced; /* bytes read by a rank's reduce steps */
    double sent;    /* bytes that the busiest rank sends, or takes if that is more */
};

struct form {
    void (*write)(struct plan *plan); /* NULL: the algorithm has no form of this collective */
    unsigned promises;
    /* `bytes`: count * element size, as in the call */
    void (*cost)(int size, double bytes, struct cost *ret_cost);
    /* Of the cost, for people: "2(n-1) steps, 2(n-1)/n of the vector over each link" */
    const char *formula;
};

/* What a form in two levels has besides: grouping.h. */
struct level_form {
    unsigned runs;    /* promises that hold too where groups are runs of ranks */
    unsigned aligned; /* ... and where they are aligned */
    /* Of the whole, and the part of it that goes from group to group, where `sent` is what all
     * ranks of a group send. */
    void (*cost)(const struct grouping *groups, double bytes, struct cost *ret_cost,
                 struct cost *ret_across);
};

struct algorithm {
    const char *name;    /* "ring" */
    const char *summary; /* one sentence */
    bool neighbours;     /* ranks send to the next one only: groups stay together (reorder.h) */
    struct form forms[RONDO_COLLECTIVES];
    const struct level_form *levels; /* [collective]; NULL: its plans do not look at groups */
};

/* All algorithms, NULL-terminated. */
extern const struct algorithm *const algorithms[];
const struct algorithm *algorithm_find(const char *name); /* NULL if there is none */

/* What the plans keep in these groups; NULL: in those of grouping_square(). */
unsigned algorithm_promises(const struct algorithm *algorithm, rondo_collective collective,
                            const struct grouping *groups);

/* Which plan: a call as one rank sees it. */
struct plan_seat {
    rondo_collective collective;
    int size, rank, root;
    const struct grouping *groups; /* NULL: those of grouping_square() */
};

/* Compile: the plan of one rank. RONDO_ERROR_UNSUPPORTED if the algorithm has no such form. */
rondo_result algorithm_write(const struct algorithm *algorithm, const struct plan_seat *seat,
                             struct plan **ret_plan);
/* The same where nothing is known about groups. */
rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan);

#endif
