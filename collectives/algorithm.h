/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithm.h - what an algorithm is: a name, and a row for each collective that it has: who writes
 * its plans, and what they promise. A new algorithm is one file that defines a `struct algorithm`,
 * and one line in select/algorithms.c.
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

/* The way of data through the ranks, the one part of a cost that a rank's plan does not show
 * (cost.h). */
enum way {
    WAY_ROUNDS, /* every rank exchanges messages with all whom it depends on */
    WAY_CHAIN,  /* through all ranks, one after another */
    WAY_TREE,   /* through the ceil(log2 n) levels of a tree */
};

/* A form is what an algorithm does for one collective. */
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

/* These plans were not written here: plans of one collective, for so many ranks and one root. */
struct given {
    struct plan *const *plans; /* [rank] */
    int size, root;
};

struct algorithm {
    const char *name;    /* "ring" */
    const char *summary; /* one sentence */
    struct form forms[RONDO_COLLECTIVES];
    bool neighbours; /* ranks send to the next one only: groups stay together */
    bool any_order;  /* forms are right for ranks in any order, so near ones stand side by side */
    bool levels;     /* plans look at groups of ranks, and have two levels */
    const struct given *given; /* NULL: it writes its plans */
};

/* All algorithms, NULL-terminated. */
extern const struct algorithm *const algorithms[];
/* One of those, or of the ones that were added; NULL if there is none of that name. */
const struct algorithm *algorithm_find(const char *name);
/* True if it has plans for such a call. */
bool algorithm_has(const struct algorithm *algorithm, rondo_collective collective, int size,
                   int root);
/* Let algorithm_find() find it too, for ever; selection only takes it by its name. Returns it, or
 * NULL without memory. */
const struct algorithm *algorithm_add(const struct algorithm *algorithm);

/* Returns the promises that plans keep in these groups; NULL: in those of grouping_square(). */
unsigned algorithm_promises(const struct algorithm *algorithm, rondo_collective collective,
                            const struct grouping *groups);

/* A request names the plan that is wanted: a call as one rank sees it. */
struct plan_request {
    rondo_collective collective;
    int size, rank, root;
    const struct grouping *groups; /* NULL: those of grouping_square() */
    /* Ranks as they sit in the hardware, for algorithms of any_order; NULL: group by group. */
    const int *order;
};

/* Compile: the plan of one rank. RONDO_ERROR_UNSUPPORTED if the algorithm has no such form. */
rondo_result algorithm_write(const struct algorithm *algorithm, const struct plan_request *request,
                             struct plan **ret_plan);
/* Calls algorithm_write() for ranks about whose groups nothing is known. */
rondo_result algorithm_plan(const struct algorithm *algorithm, rondo_collective collective,
                            int size, int rank, int root, struct plan **ret_plan);
/* Writes the plan for `reader`, which gets its steps; *ret_plan has none. */
rondo_result algorithm_read(const struct algorithm *algorithm, const struct plan_request *request,
                            struct plan_reader *reader, struct plan **ret_plan);

#endif
