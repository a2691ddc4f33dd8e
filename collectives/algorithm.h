/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithm.h - what an algorithm is: a name, and a row for each collective that it has: who writes
 * its plans, and what they promise. A new algorithm is one file that defines a `struct algorithm`,
 * and one line in algorithms.c.
 */
#ifndef RONDO_COLLECTIVES_ALGORITHM_H
#define RONDO_COLLECTIVES_ALGORITHM_H

#include "plan/plan.h"

/* A form promises these things of its plans; plan/verify proves each claim. */
enum promise {
    PROMISE_BALANCED = 1,   /* sums associate as KERNEL_BALANCED over ranks 0..n-1: deterministic */
    PROMISE_RANK_ORDER = 2, /* operands keep rank order: for operations that do not commute */
    PROMISE_ONE_ROUND = 4,  /* each result is one reduce step: narrow floats are rounded once */
    PROMISE_IN_PLACE = 8,   /* also right when input and output are the same memory (rondo.h) */
    PROMISE_PEER_MEMORY = 16, /* touches user buffers of peers: needs memory that they can map */
};

/* How far data travel: the one thing about cost that a rank's plan does not tell (cost.h). */
enum way {
    WAY_ROUNDS, /* every rank exchanges messages with all whom it depends on */
    WAY_CHAIN,  /* through all ranks, one after another */
    WAY_TREE,   /* through the ceil(log2 n) levels of a tree */
};

/* How an algorithm does one collective. */
struct form {
    void (*write)(struct plan *plan); /* NULL: the algorithm has no form of this collective */
    unsigned promises;
    const char *formula; /* the cost, for people: "2(n-1) steps, 2(n-1)/n of the vector ..." */
    enum way way;
    /* Only where ranks are in groups (levels/hierarchy.h). */
    const struct recipe *recipe; /* algorithms inside of groups and across them */
    unsigned runs;               /* promises that hold too where groups are runs of ranks */
    unsigned aligned;            /* promises that hold too where groups are aligned */
};

struct algorithm {
    const char *name;    /* "ring" */
    const char *summary; /* one sentence */
    struct form forms[RONDO_COLLECTIVES];
    bool neighbours; /* ranks send to the next one only: groups stay together */
    bool levels;     /* plans look at groups of ranks, and have two levels */
};

/* All algorithms, NULL-terminated. */
extern const struct algorithm *const algorithms[];
const struct algorithm *algorithm_find(const char *name); /* NULL if there is none */

/* Returns the promises that plans keep in these groups; NULL: in those of grouping_square(). */
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
/* Calls algorithm_write() for ranks about whose groups nothing is known. */
rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan);
/* Writes the plan for `reader`, which gets its steps; *ret_plan has none. */
rondo_result algorithm_read(const struct algorithm *algorithm, const struct plan_seat *seat,
                            struct plan_reader *reader, struct plan **ret_plan);

#endif
