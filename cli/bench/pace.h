/* SPDX-License-Identifier: BSD-3-Clause */
/* pace.h - how one library is measured at one size. */
#ifndef RONDO_CLI_BENCH_PACE_H
#define RONDO_CLI_BENCH_PACE_H

#include "cli/bench/sweep.h"

struct pace {
    struct bench_command command;
    int round_batches;    /* batches of a round, which may be more than one command has */
    double round_seconds; /* no further command begins after these; 0: whatever it takes */
    double *batches;      /* times found so far, of the slowest rank */
    int count, room;
    double rank_ratios; /* sum of slowest rank / fastest rank */
    /* With --overlap, of each round: the calls alone, computing alone, and what was hidden. */
    double pure[NOISE_ROUNDS_MAX], work[NOISE_ROUNDS_MAX], hidden[NOISE_ROUNDS_MAX];
    int round_count;
    double call_seconds; /* that warming up found */
};

/* The size is that at sweep->size_count. `pace` is zeroed, or was used before. */
void pace_init(struct pace *pace, const struct bench_sweep *sweep, int library, uint64_t largest);
void pace_done(struct pace *pace);
/* How many calls make a batch, and how many batches a round, if a call takes `seconds`. */
void pace_set(struct pace *pace, const struct bench_options *options, double seconds);
/* Runs the batches of a round, and keeps the time of each. */
enum bench_status pace_run(struct pace *pace, struct bench_group *group,
                           struct bench_reply *replies);
/* Makes calls before the clock counts; they also tell how long one takes. */
enum bench_status pace_warm_up(struct pace *pace, const struct bench_options *options,
                               struct bench_group *group, struct bench_reply *replies);

#endif
