/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_limit.h - three figures of the machine that --limit stands on. */
#ifndef RONDO_CLI_BENCH_LIMIT_H
#define RONDO_CLI_BENCH_LIMIT_H

#include "cli/bench_workers.h"

struct bench_limit {
    bool measured;
    double line; /* seconds until everybody has seen a cache line of everybody else */
    double copy; /* bytes that all ranks together copy per second, out of a neighbour's memory */
    double all_reduce; /* bytes of the vector per second, summed without a copy */
    size_t bytes;      /* of the vectors that are copied and summed */
};

/* By the ranks of "limit". 0, or -1 with sentences on stderr. */
int bench_limit_measure(struct bench_group *group, struct bench_limit *ret_limit);

#endif
