/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain.h - plans as a page of text: round by round, who sends what to whom and what each rank
 * then has.
 */
#ifndef RONDO_PLAN_EXPLAIN_EXPLAIN_H
#define RONDO_PLAN_EXPLAIN_EXPLAIN_H

#include "plan/plan.h"

#include <stdio.h>

enum { EXPLAIN_FULL = 8 }; /* ranks up to which every message is shown */

struct explain_style {
    bool utf8;
    bool bold; /* the terminal can */
};

/* The totals of a run of the plans. */
struct explain_totals {
    int rounds;
    unsigned long messages;      /* all of them */
    unsigned long data_messages; /* that carry data */
    unsigned long most_sent;     /* atoms, by the rank that sends most */
    unsigned parts;              /* atoms per block */
};

/*
 * Run the plans of all ranks on symbols (verify.h) and print what happens. Rounds are levels:
 * the messages of a round wait for those of the rounds before and for nothing else.
 * RONDO_ERROR_INTERNAL with a sentence if the plans are wrong, RONDO_ERROR_MEMORY. `to` may be
 * NULL, to learn the totals only.
 */
rondo_result explain_plans(struct plan *const *plans, int size, const struct explain_style *style,
                           FILE *to, struct explain_totals *ret_totals);

#endif
