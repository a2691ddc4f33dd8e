/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what comes out of a sweep: the table on stdout, and files. */
#ifndef RONDO_CLI_BENCH_REPORT_H
#define RONDO_CLI_BENCH_REPORT_H

#include "cli/bench/record.h"
#include "cli/bench/sweep.h"

#define BENCH_CSV_HEADER                                                                    \
    "library,collective,algorithm,ranks,bytes,dtype,op,memory,in_place,median_us,min_us,"   \
    "algbw_GBps,busbw_GBps,wrong,p95_us,p99_us,spread,rank_spread,steady,ratio,ratio_low,"  \
    "ratio_high,ratio_confidence,root,settings,trace,communicators,buffers,messages_per_s," \
    "pure_us,compute_us,overlap,rank_bytes,communicator_bytes,ran,p90_us,max_us,"           \
    "predicted_us," BENCH_MACHINE_VIEW

/* These two say how a library of the sweep was run. */
const char *bench_algorithm_of(const struct bench_sweep *sweep, int library);
const char *bench_memory_of(const struct bench_sweep *sweep, int library);

/* A library at a size; that of the first library knows the best peer, others the first library. */
struct bench_record bench_record_of(const struct bench_sweep *sweep, int index, int library);

/* A line of comment, without its end; none if it was not measured. */
void bench_limit_print(const struct bench_limit *limit);
void bench_table_begin(const struct bench_sweep *sweep);
void bench_table_row(const struct bench_sweep *sweep);   /* the size at sweep->size_count */
void bench_table_watch(const struct bench_sweep *sweep); /* the same, until that replaces it */
void bench_table_end(const struct bench_sweep *sweep);

/* A format prints a sweep to stdout: before the first size, when a size is done (that at
 * sweep->size_count), and when all are, or the sweep ended early (it is not `complete`). */
struct bench_format {
    void (*begin)(const struct bench_sweep *sweep);
    void (*row)(const struct bench_sweep *sweep);
    void (*end)(const struct bench_sweep *sweep);
};

/* format/: our table, and what others print. */
extern const struct bench_format bench_formats[BENCH_FORMATS];
/* Ends the program if the format has no words for what is asked. */
void bench_format_check(const struct argp_state *state, const struct bench_options *options);

/* Appends what is new to the CSV; writes the JSON anew if its file can be written twice. */
void bench_sweeps_keep(struct bench_sweeps *sweeps);
/* Ends the files that the options name. 0, or -1 with sentences on stderr. */
int bench_sweeps_write(struct bench_sweeps *sweeps);

/* plot.c: the script for gnuplot; `result` is a sweep, or several. */
void bench_sweep_plot(const void *result, FILE *script);
void bench_sweeps_plot(const void *result, FILE *script);
/* False: there is nothing to draw over size, as of a barrier, or where no call was possible. */
bool bench_sweeps_have_points(const struct bench_sweeps *sweeps);

#endif
