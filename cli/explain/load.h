/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - elements that ranks send, copy and read to reduce in a call. */
#ifndef RONDO_CLI_EXPLAIN_LOAD_H
#define RONDO_CLI_EXPLAIN_LOAD_H

#include "plan/plan.h"

/* Elements: copied counts each place that they are copied to, reduced each source of a sum. */
struct load {
    double sent, copied, reduced;
};

/* Returns of each the most that any rank has; NULL among the plans: a rank that takes no part. */
struct load load_most(struct plan *const *plans, int plan_count, double count);

#endif
