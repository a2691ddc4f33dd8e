/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate.h - what `rondo simulate` was asked, and what came of it. */
#ifndef RONDO_CLI_SIMULATE_SIMULATE_H
#define RONDO_CLI_SIMULATE_SIMULATE_H

#include "collectives/algorithm.h"
#include "plan/simulate/simulate.h"

#include <stdio.h>

enum { ASK_SIZES = 64, ASK_ALGORITHMS = 32, ASK_FAULTS = 16, ASK_PLACES = 3 };

struct ask {
    int collective; /* -1: not given */
    int ranks, root;
    const char *topology;
    const char *bytes, *algorithms; /* as given */
    double factor;
    double sizes[ASK_SIZES];
    int size_count;
    const struct algorithm *list[ASK_ALGORITHMS];
    int list_count;
    bool all; /* the list is what there is, and not what was named */
    struct machine machine;
    struct simulate_fault faults[ASK_FAULTS];
    int fault_count;
    struct simulate_slow slow[ASK_FAULTS];
    int slow_count;
    double jitter, seed;
    int segments;
    bool whole; /* every rank is simulated */
    bool list_only, path, links;
    const char *csv, *json, *svg, *chrome;
};

/* A place on the path that took longest. */
struct place {
    char text[160];
    double part; /* of the time */
};

struct answer {
    const struct algorithm *algorithm;
    double bytes, seconds, algorithm_bw, bus_bw;
    int segments, simulated;
    double doubt;
    unsigned long cut, events;
    struct fold fold;
    double wall; /* seconds that the simulation itself took */
    bool path;   /* what follows is known */
    int last_rank;
    struct place places[ASK_PLACES];
    struct place busiest[ASK_PLACES]; /* links: the part of the time that they are in use */
    bool fastest;                     /* of all algorithms at this size */
};

struct answers {
    struct answer *list;
    int count;
    bool passed[ASK_FAULTS]; /* some algorithm's messages pass the link of this fault */
};

/* Fills in what the command line says; ends the program if it is wrong. */
void ask_read(int argc, char **argv, struct ask *ret_ask);
/* Reads a topology: a name with keys, or a file that holds them (docs/simulator.md). */
rondo_result ask_machine(const char *text, struct machine *ret_machine);

/* Simulates all that was asked, and closed with free(). Returns the exit status. */
int answer_all(const struct ask *ask, struct answers *ret_answers);

/* Finds what took longest, of a run with records. */
void path_places(const struct programs *programs, const struct simulate_result *times,
                 struct answer *answer);
/* Finds the links that are in use most. */
void path_busiest(const struct programs *programs, const struct simulate_result *times,
                  struct answer *answer);
/* "62 % of the time rank 512 waits for ..." */
void path_sentence(const struct ask *ask, const struct answer *answer, FILE *to);

/* A time line for Perfetto. False: it could not be written, and stderr says why. */
bool chrome_write(const char *file, const struct programs *programs,
                  const struct simulate_result *times);

void report_table(const struct ask *ask, const struct answers *answers);
bool report_files(const struct ask *ask, const struct answers *answers);
/* "64K" */
void report_size(double bytes, char *text, size_t room);

#endif
