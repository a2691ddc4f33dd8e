/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp.h - inside `rondo bench ddp`: how much faster do more ranks train?
 *
 * ddp.c has the options and runs trainings in turns, ddp_report.c says what came out.
 */
#ifndef RONDO_CLI_BENCH_DDP_H
#define RONDO_CLI_BENCH_DDP_H

#include <stdio.h>

enum { BENCH_DDP_WORLDS = 8, BENCH_DDP_ROUNDS = 64 };

/* One training. */
struct bench_ddp_run {
    double tokens_per_s; /* at the median step */
    double step;         /* seconds, the median */
    double waiting;      /* part of the time in which the mean rank computed nothing */
    double hidden;       /* part of communication behind the backward pass; negative: not known */
    double bytes;        /* of gradients per step and rank */
};

struct bench_ddp_world {
    int ranks;
    struct bench_ddp_run runs[BENCH_DDP_ROUNDS];
};

struct bench_ddp_options {
    int world_count, rounds, steps;
    int ranks[BENCH_DDP_WORLDS];
    const char *csv, *json;
    char **train; /* more options of `rondo train` */
    int train_count;
};

struct bench_ddp_result {
    const struct bench_ddp_options *options;
    struct bench_ddp_world worlds[BENCH_DDP_WORLDS];
    int rounds; /* that are complete */
};

/* The contract of a subcommand; argv[0] is "ddp". */
int bench_ddp(int argc, char **argv);

void bench_ddp_print(const struct bench_ddp_result *result, FILE *to);
/* 0, or -1 with a sentence on stderr. */
int bench_ddp_csv_write(const struct bench_ddp_result *result, const char *path);
int bench_ddp_json_write(const struct bench_ddp_result *result, const char *path);

#endif
