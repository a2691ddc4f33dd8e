/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec_world.h - ranks for tests of the executor: rings in plain memory, one thread per rank, plans
 * made by hand. Nothing here uses Criterion, so that stress programs run the same under
 * ThreadSanitizer.
 */
#ifndef RONDO_TESTS_PLAN_EXEC_WORLD_H
#define RONDO_TESTS_PLAN_EXEC_WORLD_H

#include "plan/exec.h"

enum { TRIAL_RANKS = 5 };

/* One call of all ranks. */
struct trial {
    int size, slots;
    size_t slot_bytes, count, element;
    const struct kernel_op *op;
    const struct exec_world_ops *ops;
    uint32_t start; /* what the counters of every link begin with */
    bool stale;     /* short forms have flags of 2^32 messages ago: numbers still to come */
    struct plan *plans[TRIAL_RANKS];
    const void *input[TRIAL_RANKS];
    void *output[TRIAL_RANKS];
    uint32_t fingerprint[TRIAL_RANKS];
    bool unreachable[TRIAL_RANKS];

    /* afterwards */
    enum exec_state state[TRIAL_RANKS];
    struct exec_shape shape;
    uint32_t foreign[TRIAL_RANKS];
    int blamed[TRIAL_RANKS];
    bool credit_given[TRIAL_RANKS]; /* every slot that came in was given back */
    uint32_t stale_left;            /* flags of that sort, on links that carried messages */
};

/* Plans of one part; to be filled. */
bool trial_open(struct trial *trial, rondo_collective collective, int size);
void trial_close(struct trial *trial);
/* Relay a vector in long messages over four ranks, from such a start, and tell how many of the old
 * flags of short ones are left on each link; negative: something went wrong. */
int trial_count_stale(uint32_t start);
/* Run on threads until each rank is done or failed. False if there is no memory or no shape. */
bool trial_run(struct trial *trial);

/* Chain of messages for stress programs and tests: rank 0's
 * vector passes every rank by slots alone. */
void trial_plan_relay(struct trial *trial, unsigned parts);
/* Two programs per rank on channels of their own, each reduces half of the vector to rank 0. */
void trial_plan_two_programs(struct trial *trial);
/* Fill inputs of int32, run, compare with the sum at rank 0
 * or the copy everywhere. NULL: right; else what is wrong. */
const char *trial_check_relay(size_t count, unsigned parts, size_t slot_bytes, uint32_t start);
const char *trial_check_two_programs(size_t count, size_t slot_bytes, uint32_t start);

#endif
