/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.h - the proof of a plan: all ranks' programs run on symbols instead of numbers. */
#ifndef RONDO_PLAN_VERIFY_VERIFY_H
#define RONDO_PLAN_VERIFY_VERIFY_H

#include "plan/plan.h"

struct verify_options {
    int slots;     /* per link, proved for more too; 0: 2, the least that Rondo runs with */
    bool in_place; /* input and output alias as rondo.h says */
};

struct verify_report {
    bool balanced;    /* sums keep the balanced tree over ranks */
    bool rank_order;  /* operands of every sum are in rank order */
    bool one_round;   /* every result element comes out of one single reduce step over inputs */
    bool peer_memory; /* user buffers of peers are touched */
    unsigned long steps, messages;
    char failure[1024]; /* the failing rank, program, step and why; "" when proved */
};

/*
 * Prove the plans of all `size` ranks (plans[r] is rank r's) together, run twice back to back:
 * right result, no deadlock, no race, all slots given back. RONDO_OK, or RONDO_ERROR_INTERNAL with
 * report->failure set.
 */
rondo_result verify_plans(struct plan *const *plans, int size, const struct verify_options *options,
                          struct verify_report *report);

/*
 * Break a plan: take one step out. For tests and demonstrations of the above; sentences number the
 * others as before. False if it has no such step.
 */
bool verify_drop_step(struct plan *plan, uint32_t step);

#endif
