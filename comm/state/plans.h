/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans.h - plans that were written once and are kept until the communicator closes. A plan knows
 * no counts, so there are few of them, and a list is as good as a table.
 *
 * Each executor of a communicator has a cache of its own: its ranks are in groups of its own, and
 * it may keep what it made of a plan beside it.
 */
#ifndef RONDO_COMM_STATE_PLANS_H
#define RONDO_COMM_STATE_PLANS_H

#include "collectives/algorithm.h"

struct plan_entry {
    struct plan_entry *next;
    const struct algorithm *algorithm;
    int cut; /* struct grouping's */
    struct plan *plan;
    void *compiled; /* what a device's executor made of the plan; NULL: nothing yet */
};

/* Find the plan of that request, or write it. Its groups are the same in every call but for their
 * cut. The caller sees to it that one thread at a time asks. */
rondo_result plans_find(struct plan_entry **cache, const struct algorithm *algorithm,
                        const struct plan_request *request, struct plan_entry **ret_entry);
/* Close all plans of the cache. `discard` gets what was compiled; NULL: nothing was. */
void plans_done(struct plan_entry **cache, void (*discard)(void *compiled));

#endif
