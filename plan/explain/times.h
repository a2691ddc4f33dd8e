/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times.h - when each step of a call begins and ends, by the numbers of the cost model.
 *
 * The plans of all ranks run as one segment against a clock. A message arrives `latency` after
 * its signal; one from group to group first takes its length by the bandwidth of a rail, which
 * carries one message at a time, and then the latency between groups. A copy takes its length by
 * `copy_bw` and half of that for every destination beyond the first, a reduce step the length of
 * all its sources by `reduce_bw`. A rank moves data for one of its programs at a time. Waits
 * take as long as they have to, and signals none of a rank's time.
 */
#ifndef RONDO_PLAN_EXPLAIN_TIMES_H
#define RONDO_PLAN_EXPLAIN_TIMES_H

#include "plan/plan.h"

/* Between groups, as in group_costs of collectives/select/select.h. */
struct explain_across {
    /* [rank]: its group, its place in there; NULL: all links are alike. */
    const int *group_of, *index_of;
    double latency, bandwidth;
    int rails; /* of a group: its ranks take turns */
};

struct explain_costs {
    double latency;            /* seconds */
    double copy_bw, reduce_bw; /* bytes/s */
    double bytes;              /* of a block */
    int slots;                 /* of a link */
    struct explain_across across;
};

struct explain_span {
    double start, end; /* seconds since the call began; a signal ends where it arrives */
};

struct explain_times {
    int size;
    struct explain_span **spans; /* [plan][step] */
    double end;                  /* of the last step */
};

/* The plans are right: the verifier has proved them. NULL among them: a rank that takes no part. */
rondo_result explain_times_open(struct plan *const *plans, int size,
                                const struct explain_costs *costs, struct explain_times *ret_times);
void explain_times_close(struct explain_times *times);

#endif
