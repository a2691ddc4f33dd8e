/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.h - `rondo bench compare OLD NEW`: what became slower, and what faster?
 *
 *     files (read.c) -> runs, with a row per cell
 *     two runs, or two libraries of one -> a comparison (judge.c), by ranks of rounds
 *     (difference.c), corrected for the number of cells
 *     -> a table or JSON, and the exit status (compare.c)
 *
 * A cell is all that a row was measured with: the call, its size, the ranks, the settings.
 */
#ifndef RONDO_CLI_BENCH_COMPARE_COMPARE_H
#define RONDO_CLI_BENCH_COMPARE_COMPARE_H

#include "cli/bench/compare/difference.h"
#include "cli/bench/noise.h"
#include "cli/bench/options.h"

#include <jansson.h>
#include <stdbool.h>

enum { COMPARE_NAME = BENCH_SETTINGS + 512 };

struct compare_row {
    char library[32];
    char cell[COMPARE_NAME];         /* "all_reduce 4096 B, auto, float32 sum, host, 2 ranks" */
    double rounds[NOISE_ROUNDS_MAX]; /* microseconds */
    int sweeps[NOISE_ROUNDS_MAX];    /* which of the files the round is of */
    int round_count;
    bool steady;
    long long wrong; /* values */
};

struct compare_run {
    const char *path;  /* or several of them, a comma list */
    char machine[256]; /* what has to be the same for a comparison that means something */
    char first[32];    /* the first library */
    bool complete;
    struct compare_row *rows;
    int row_count;
    int sweeps; /* files */
    int share;  /* how many rounds of a row each file may give, so that all of them count */
};

enum compare_verdict { COMPARE_SAME, COMPARE_SLOWER, COMPARE_FASTER, COMPARE_UNSTEADY };

struct compare_cell {
    const struct compare_row *old, *new;
    struct difference difference;
    double p; /* corrected for the number of cells; NAN: the cell is not judged */
    enum compare_verdict verdict;
};

struct comparison {
    const struct compare_run *old, *new;
    bool paired;   /* rounds of both took turns */
    double margin; /* ratios closer to 1 than this are the same: 0.03 */
    struct compare_cell *cells;
    int cell_count, judged; /* judged: all but those that are not steady */
    int slower, faster;
    long long wrong;        /* values of the new one */
    int only_old, only_new; /* cells */
    double between_runs;    /* logarithm; 0: not known */
    struct difference all;  /* of the geometric mean; its p is of no interest */
    double least_p;         /* that the rounds can give */
};

/* The row of that name, new if it is the first; NULL: there is no memory. */
struct compare_row *compare_row_of(struct compare_run *run, const char *library, const char *cell);
/* Adds a round of the file that is being read, unless that has given its share. */
void compare_add_round(const struct compare_run *run, struct compare_row *row, double us);
/* Adds the rows of an output of nccl-tests. 0, or -1: it is none, or cannot be read. */
int compare_read_nccl_tests(struct compare_run *run, const char *path);
/*
 * Files of the same sweep, a comma list: their rounds come one after the other. The rows have the
 * fastest batch of each round, or its median. 0, or -1 with a sentence on stderr.
 * compare_run_done() in both cases.
 */
int compare_read(const char *paths, bool medians, struct compare_run *ret_run);
void compare_run_done(struct compare_run *run);

/*
 * Fills in all but the first members, down to `margin`, of rows of the libraries of these names. 0,
 * or -1: there is no memory. comparison_done() in both cases.
 */
int compare_judge(struct comparison *comparison, const char *old_library, const char *new_library);
void comparison_done(struct comparison *comparison);

#endif
