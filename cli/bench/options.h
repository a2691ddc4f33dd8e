/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what the user of `rondo bench` asked for. */
#ifndef RONDO_CLI_BENCH_OPTIONS_H
#define RONDO_CLI_BENCH_OPTIONS_H

#include "bench/collective.h"
#include "cli/argument.h"

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_LIBRARIES_MAX = 6, BENCH_SIZES_MAX = 1024 };

struct bench_options {
    struct bench_call call;        /* all but the count */
    int ranks;                     /* 0: one process of a launcher each */
    size_t sizes[BENCH_SIZES_MAX]; /* of the full vector, bytes */
    int size_count;
    const char *bytes; /* the sizes as they were given; the next one is `factor` times as large */
    double factor;
    /* The first is what the others are compared with; "limit", if it is asked for, is the last. */
    const char *libraries[BENCH_LIBRARIES_MAX];
    int library_count;
    char *peers;            /* those that were asked for, a comma list; NULL: none */
    bool only_peers, limit; /* without Rondo; with the machine's limit */
    enum bench_memory memory;
    bool cold, rewrite, threads, deterministic;
    bool graph, blocking; /* how calls on device memory are made; else queued one by one */
    const char *nccl;     /* its file; NULL: what the system has */
    int iterations;       /* calls per batch; 0: as many as `seconds` allows */
    int warmup, rounds;
    double seconds; /* per size and library */
    double timeout; /* until a silent rank is an error; negative: not set */
    const char *csv, *json, *plot;
    /* Ranks on several hosts: `enter HOST PROGRAM ...` runs a program on host 0, 1, ... */
    int hosts; /* 0: all ranks are here */
    const char *enter, *meet, *interface;
};

/*
 * Reads the command line; explains what is wrong on stderr and leaves with status 2, or 0 after
 * --help.
 */
void bench_options_parse(int argc, char **argv, struct bench_options *ret_options);

/* "8:64M" (each `factor` times the one before), or "1K,4K,1M". 0, or -1. */
int bench_sizes_parse(const char *text, double factor, struct bench_options *options);

/* ---- Options of several commands, whose own begin with struct bench_options ------------------ */

argument_take bench_take_type, bench_take_op;

/* Reads the text of --bytes; what gives no sizes ends the program. */
void bench_read_sizes(const struct argp_state *state, struct bench_options *options);
/* Appends the libraries of --vs; what is none, or there twice, ends the program. */
void bench_add_peers(const struct argp_state *state, struct bench_options *options);
/* Ends the program if elements of the type cannot be reduced so. */
void bench_check_op(const struct argp_state *state, const struct bench_options *options);

#endif
