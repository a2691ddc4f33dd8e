/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what the user of `rondo bench` asked for. */
#ifndef RONDO_CLI_BENCH_OPTIONS_H
#define RONDO_CLI_BENCH_OPTIONS_H

#include "base/caller/times.h"
#include "bench/pattern.h"
#include "cli/common/argument.h"

#include <stdbool.h>
#include <stddef.h>

struct bench_trace; /* steps.h */

enum { BENCH_SIZES_MAX = 1024, BENCH_SETS_MAX = 8, BENCH_SETTINGS = 4096 /* bytes */ };

/* Runs of one command may differ in these; the last one changes most often. */
enum bench_dimension {
    BENCH_BY_RANKS = 0,
    BENCH_BY_MEMORY,
    BENCH_BY_COLLECTIVE,
    BENCH_BY_TYPE,
    BENCH_BY_OP,
    BENCH_BY_ALGORITHM,
    BENCH_DIMENSIONS
};

/*
 * A library is what is measured: Rondo, its peers and, as if it were one, what the machine can do.
 */
enum bench_library_id {
    BENCH_RONDO = 0,
    BENCH_OPENMPI,
    BENCH_MPICH,
    BENCH_GLOO,
    BENCH_NCCL,
    BENCH_BASE, /* Rondo of another build */
    BENCH_LIMIT,
    BENCH_LIBRARIES
};

/* The format says how stdout looks. */
enum bench_format_id { BENCH_TABLE = 0, BENCH_NCCL_TESTS, BENCH_OSU, BENCH_FORMATS };

struct bench_options {
    const char *lists[BENCH_DIMENSIONS]; /* as they were given; NULL: the default */
    const char *sets[BENCH_SETS_MAX];    /* "RONDO_SLOTS=2,8" */
    int set_count;
    char settings[BENCH_SETTINGS]; /* of this run: "RONDO_SLOTS=2 RONDO_THREADS=1" */
    struct bench_call call;        /* all but the count */
    int ranks;                     /* 0: one process of a launcher each */
    size_t sizes[BENCH_SIZES_MAX]; /* of the full vector, bytes */
    int size_count;
    /* The sizes as they were given, the next one is `factor` times as large; -e of nccl-tests. */
    const char *bytes, *most_bytes;
    double factor;
    /* The first is what the others are compared with; the limit is the last, if it is asked for. */
    enum bench_library_id libraries[BENCH_LIBRARIES];
    int library_count;
    char *peers;            /* those that were asked for, a comma list; NULL: none */
    bool only_peers, limit; /* without Rondo; with the machine's limit */
    enum bench_memory memory;
    enum bench_format_id format;
    bool watch; /* redraws the row that is being measured */
    /* See steps.h. */
    bool overlap;      /* calls go on in the background, beside computing */
    int communicators; /* that are called at once; 0 or 1: one */
    int buffers;       /* that calls take turns on; 0 or 1: one */
    const char *trace_file;
    const struct bench_trace *trace; /* NULL: none */
    bool cold, rewrite, threads, deterministic;
    bool graph, blocking; /* how calls on device memory are made; else queued one by one */
    const char *nccl;     /* its file; NULL: what the system has */
    char *base;           /* the file of another build of Rondo; NULL: none */
    int iterations;       /* calls per batch; 0: as many as `seconds` allows */
    int warmup, rounds;
    int check;      /* 0: wrong values are not counted */
    double seconds; /* per size and library */
    double timeout; /* until a silent rank is an error; negative: not set */
    const char *csv, *json, *plot;
    /* Ranks on several hosts: `enter HOST PROGRAM ...` runs a program on host 0, 1, ... */
    int hosts; /* 0: all ranks are here */
    const char *enter, *meet, *interface;
};

/* One command makes these runs. free() the list. */
struct bench_runs {
    struct bench_options *list;
    int count, left_out; /* combinations that there are, and that cannot be */
};

/*
 * Reads the command line; explains what is wrong on stderr and leaves with status 2, or 0 after
 * --help.
 */
void bench_options_parse(int argc, char **argv, struct bench_runs *ret_runs);

/* ---- lists.c --------------------------------------------------------------------------------- */

/* Makes all combinations; words that are none end the program. */
void bench_lists_expand(const struct argp_state *state, struct bench_options *options,
                        struct bench_runs *ret_runs);
/* Keeps what --set gives; what is no setting, or no value of one, ends the program. */
void bench_take_set(struct argp_state *state, void *options, char *text);

/* Puts it into the environment; a value that the setting does not have ends the program. */
void bench_put_setting(const struct argp_state *state, const char *name, const char *value);

/* "8:64M" (each `factor` times the one before), or "1K,4K,1M". 0, or -1. */
int bench_sizes_parse(const char *text, double factor, struct bench_options *options);

/* ---- Options of several commands, whose own begin with struct bench_options ------------------ */

/* Keep the number of a type or an operation; a name that there is none of ends the program. */
void bench_take_type(struct argp_state *state, void *options, char *text);
void bench_take_op(struct argp_state *state, void *options, char *text);
/* Reads the text of --bytes; what gives no sizes ends the program. */
void bench_read_sizes(const struct argp_state *state, struct bench_options *options);
/* Appends the libraries of --vs; what is none, or there twice, ends the program. */
void bench_add_peers(const struct argp_state *state, struct bench_options *options);
/* False: each of the sizes is less than an element per rank. True where ranks are not known yet. */
bool bench_has_elements(const struct bench_options *options);
/* Ends the program if elements of the type cannot be reduced so. */
void bench_check_op(const struct argp_state *state, const struct bench_options *options);

#endif
