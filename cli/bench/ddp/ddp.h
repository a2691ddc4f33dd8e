/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.h - inside `rondo bench ddp`: how much faster do more ranks train? */
#ifndef RONDO_CLI_BENCH_DDP_DDP_H
#define RONDO_CLI_BENCH_DDP_DDP_H

#include "cli/bench/record.h"

enum { BENCH_DDP_WORLDS = 8, BENCH_DDP_ROUNDS = 64 };

/* Trainings on some ranks. */
struct bench_ddp_world {
    int ranks;
    /* What each round gave: tokens_per_s and step_s (of the median step); waiting, the part of the
     * time in which the mean rank computed nothing; hidden, the part of communication behind the
     * backward pass, negative if it is not known; bytes_per_step, of gradients per rank. */
    struct bench_record runs[BENCH_DDP_ROUNDS];
};

struct bench_ddp_options {
    struct bench_options bench; /* rounds, csv, json, plot */
    int world_count, steps;
    int ranks[BENCH_DDP_WORLDS];
    char **train; /* more options of `rondo train` */
    int train_count;
};

struct bench_ddp_result {
    const struct bench_ddp_options *options;
    struct bench_ddp_world worlds[BENCH_DDP_WORLDS];
    int rounds; /* that are complete */
};

void bench_ddp_print(const struct bench_ddp_result *result, FILE *to);
/* The files that the options name. 0, or -1 with sentences on stderr. */
int bench_ddp_write(const struct bench_ddp_result *result);

#endif
