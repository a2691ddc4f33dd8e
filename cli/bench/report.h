/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what comes out of a sweep: the table on stdout, CSV, JSON, a drawing. */
#ifndef RONDO_CLI_BENCH_REPORT_H
#define RONDO_CLI_BENCH_REPORT_H

#include "cli/bench/sweep.h"

#include <jansson.h>
#include <stdio.h>

#define BENCH_CSV_HEADER                                                                  \
    "library,collective,algorithm,ranks,bytes,dtype,op,memory,in_place,median_us,min_us," \
    "algbw_GBps,busbw_GBps,wrong"

/* How a library of the sweep was run: the words of the columns. */
const char *bench_algorithm_of(const struct bench_sweep *sweep, int library);
const char *bench_memory_of(const struct bench_sweep *sweep, int library);
const char *bench_op_of(const struct bench_sweep *sweep); /* "none" if nothing is reduced */

/* A line of comment, without its end; none if it was not measured. */
void bench_limit_print(const struct bench_limit *limit);
void bench_table_begin(const struct bench_sweep *sweep);
void bench_table_row(const struct bench_sweep *sweep); /* the size at sweep->size_count */
void bench_table_end(const struct bench_sweep *sweep);

/* 0, or -1 with a sentence on stderr that says what to do. */
void bench_csv_print(const struct bench_sweep *sweep, FILE *to);
int bench_csv_write(const struct bench_sweep *sweep, const char *path);
int bench_json_write(const struct bench_sweep *sweep, const char *path);
int bench_plot_write(const struct bench_sweep *sweep, const char *path);

/* Processor, system; the caller's to let go of. */
json_t *bench_machine_json(void);

#endif
