/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h - what all commands of `rondo bench` report, and its writers.
 *
 * A record is one measured line, whoever measured it; a command fills the members that it has. The
 * table of fields in record.c says how a member is called and written. A view is a comma list of
 * fields: CSV begins with it, and in JSON its words are the keys. A table for people has columns,
 * which are fields with headings.
 */
#ifndef RONDO_CLI_BENCH_RECORD_H
#define RONDO_CLI_BENCH_RECORD_H

#include "cli/bench/options.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#define BENCH_UNKNOWN LLONG_MIN

/* A member that is not known is NULL, BENCH_UNKNOWN or NAN: nothing in CSV, null in JSON. */
struct bench_record {
    const char *library, *collective, *algorithm, *dtype, *op, *memory, *level;
    const char *settings;                  /* of this run; "": none was asked for */
    const char *best_peer, *faster;        /* the fastest other library; "yes": it is slower */
    long long ranks, root, sources, bytes; /* bytes of the full vector, or of a source */
    long long count, wrong;                /* elements */
    bool in_place, available;
    double median_us, min_us, algbw_GBps, busbw_GBps, ratio;
    const char *ran;                  /* the algorithm; NULL: nobody knows */
    const char *trace;                /* the file of the calls; NULL: there is none */
    long long communicators, buffers; /* that calls are made on at once, or in turns */
    double predicted_us;              /* by the cost model */
    double messages_per_s, pure_us, compute_us, overlap;
    long long rank_bytes, communicator_bytes; /* memory */
    double p90_us, p95_us, p99_us, max_us, spread, rank_spread;
    double ratio_low, ratio_high, ratio_confidence;
    const char *steady; /* "yes", "no" */
    double GBps, copy_GBps, percent_of_copy;
    double tokens_per_s, speed_up, efficiency, step_s, waiting, hidden, bytes_per_step;
    /* Of the machine: see bench_machine_add(). */
    const char *version, *processor, *architecture, *system, *kernel, *environment, *commit, *date;
    long long processors, cores_per_socket;
    double load, stolen_percent;
};

/* Every CSV ends with these, so that each row says where and when it was measured, wherever it is
 * copied to. They are columns, not lines of comment, which plain readers of CSV do not know. */
#define BENCH_MACHINE_VIEW                                                           \
    "version,processor,processors,cores_per_socket,architecture,system,kernel,load," \
    "stolen_percent,environment,commit,date"

/* A line of CSV, without its end. Texts with a comma are quoted. */
void bench_record_csv(const struct bench_record *record, const char *view, FILE *to);
json_t *bench_record_json(const struct bench_record *record, const char *view);
/* The view and that of the machine, and a line for each record; an array of them, of the view. */
void bench_records_csv(const struct bench_record *records, int count, const char *view, FILE *to);
json_t *bench_records_json(const struct bench_record *records, int count, const char *view);

/* ---- Tables for people ----------------------------------------------------------------------- */

enum { BENCH_FOUR_FIGURES = -1 }; /* whatever the magnitude */

struct bench_column {
    const char *field;
    const char *heading, *unit; /* NULL: "" */
    int width;                  /* with the suffix */
    int places;                 /* of a real */
    double scale;               /* of a real; 0: 1 */
    const char *suffix;         /* of a real; NULL: none */
    const char *unknown;        /* of an available record; NULL: "n/a" */
};

/* Columns end with one without a field; `lead` comes before the first. */
void bench_columns_print(const struct bench_column *columns, const char *lead,
                         const struct bench_record *record, FILE *to);
/* `first` is the heading of the first column, unless it is NULL. */
void bench_columns_head(const struct bench_column *columns, const char *lead, const char *first,
                        FILE *to);
void bench_columns_units(const struct bench_column *columns, const char *lead, FILE *to);

/* ---- Files ----------------------------------------------------------------------------------- */

/* How a command writes what --csv, --json and --plot ask for. NULL: it has no such option. */
struct bench_writers {
    const char *command; /* for sentences */
    void (*csv)(const void *result, FILE *to);
    json_t *(*json)(const void *result);
    void (*plot)(const void *result, FILE *script); /* NULL: there is nothing to draw */
};

/* Says on stderr in which files of the options is what was done, if there are any. */
void bench_say_early(const char *what, int count, const char *things,
                     const struct bench_options *options);
/* The files of the options. 0, or -1 with sentences on stderr that say what to do. */
int bench_write_files(const struct bench_writers *writers, const struct bench_options *options,
                      const void *result);

/* ---- machine.c ------------------------------------------------------------------------------- */

/* From here on stolen time is counted. */
void bench_machine_begin(void);
/* The sources by `git describe`; "unknown": they were in no repository. */
extern const char bench_commit[];
/* A line for below a picture: processor, kernel, version, commit, date; without any '. */
void bench_machine_caption(char *text, size_t room);
/* Fills in what BENCH_MACHINE_VIEW names; valid until the next call. The version is Rondo's, unless
 * there is another, the load the mean of the last minute, the environment what was set before any
 * run. */
void bench_machine_add(struct bench_record *record);
/* The same, and all three loads, for the JSON of every command. */
json_t *bench_machine_json(void);

#endif
