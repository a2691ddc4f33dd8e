/* SPDX-License-Identifier: BSD-3-Clause */
/* call.h - a simulated call of an algorithm, for tests. */
#ifndef RONDO_TESTS_PLAN_SIMULATE_CALL_H
#define RONDO_TESTS_PLAN_SIMULATE_CALL_H

#include "collectives/algorithm.h"
#include "plan/simulate/simulate.h"

struct call {
    const char *algorithm, *topology;
    rondo_collective collective;
    int ranks, root;
    double block_bytes;
    bool unfolded, records;
    struct simulate_call more; /* its block_bytes and records are taken from above */
    const struct simulate_fault *faults;
    int fault_count;
};

/* An outcome is what came of it. */
struct outcome {
    rondo_result result;
    struct programs *programs;
    struct simulate_result times;
};

bool call_run(const struct call *call, struct outcome *ret_outcome);
void call_close(struct outcome *outcome);
/* Plans of all ranks by an algorithm; `groups` may be NULL. */
struct call_plans {
    struct simulate_plans plans; /* first */
    const struct algorithm *algorithm;
    struct plan_request request;
};
bool call_plans_make(const char *algorithm, rondo_collective collective, int ranks, int root,
                     struct call_plans *ret_plans);

#endif
