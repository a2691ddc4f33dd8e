/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matrix.h - `rondo bench matrix`: many collectives, kinds of memory and places of the result
 * beside other libraries, with the same ranks; a cell per size says who is faster.
 *
 * All rows are measured once, then all again: what the machine does in one of the passes does not
 * decide. In a pass the libraries take turns at each size, so a ratio is one of the same moment; a
 * cell has the median of its ratios.
 */
#ifndef RONDO_CLI_BENCH_MATRIX_H
#define RONDO_CLI_BENCH_MATRIX_H

#include "cli/bench/sweep.h"

#include <stdio.h>

enum { MATRIX_PASSES_MAX = 32, MATRIX_BOTH = 2 };

struct matrix_options {
    struct bench_options bench; /* what all rows have in common */
    bool collectives[BENCH_COLLECTIVES];
    int memories; /* 0: host, 1: shared, MATRIX_BOTH */
    int places;   /* 0: out of place, 1: in place, MATRIX_BOTH */
    int passes;
};

/* A collective with one kind of memory, in or out of place. */
struct matrix_row {
    struct bench_options options;
    struct bench_sweep sweeps[MATRIX_PASSES_MAX];
};

struct matrix {
    const struct matrix_options *options;
    struct matrix_row *rows;
    int row_count;
    int passes; /* done so far for the row in question */
    int rows_printed;
    bool complete; /* all is measured; else cells may be empty */
    struct bench_limit limit;
    char versions[512]; /* of all libraries */
};

/* A row at one of the sizes that were asked for; by library, medians over passes. */
struct matrix_cell {
    size_t bytes;
    double seconds[BENCH_LIBRARIES];
    double ratios[BENCH_LIBRARIES]; /* over the time of Rondo; 0: there is none */
    int best_peer;                  /* that with the lowest ratio; -1: there is none */
};

struct matrix_cell matrix_cell(const struct matrix *matrix, int row, int column);
/* "all_reduce, shared, in place" */
void matrix_row_name(const struct matrix_row *row, char *text, size_t room);
/* Time of the best peer, or of the limit, over that of Rondo; 0: there is none. */
double matrix_ratio(const struct matrix *matrix, const struct matrix_cell *cell, bool to_limit);

/* ---- report.c -------------------------------------------------------------------------------- */

void matrix_print_head(const struct matrix *matrix);
void matrix_print_row(const struct matrix *matrix, int row, bool to_limit);
/* The ratios to the limit, and who is not the fastest where. */
void matrix_print_end(const struct matrix *matrix);
/* The files that the options name. 0, or -1 with sentences on stderr. */
int matrix_write(const struct matrix *matrix);

#endif
