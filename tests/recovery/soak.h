/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.h - what the ranks of a run (soak_rank.c) and the process that starts and judges them
 * (soak.c, soak_judge.c) have in common: memory that all of them share.
 */
#ifndef RONDO_TESTS_RECOVERY_SOAK_H
#define RONDO_TESTS_RECOVERY_SOAK_H

#include "rondo/rondo.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RANKS = 17, ROUNDS = 12, CALLS = 100, SENTENCE = 1024, MEETINGS = 4 };

/* A fate strikes at one of these moments, at the last three only if asked to (--everywhere). */
enum moment { WORKING, AGREEING, SHRINKING, OPENING, SPLITTING, CLOSING, MOMENTS };

/* A rank has one of these at each meeting to which it is called. */
enum arrival { AWAY, OPEN, REFUSED };

struct round {
    uint64_t flags, failed; /* the verdict, `failed` as bits */
    int left;               /* ranks of the new communicator */
};

struct said {
    bool done, wrong;
    rondo_result result;
    int rounds, calls;
    unsigned long faults;
    double recovery;  /* seconds of the longest one, from the failure to the new communicator */
    uint64_t members; /* of the last communicator, as they were numbered first */
    struct round round[ROUNDS];
    char sentence[SENTENCE];
};

struct fate {
    bool fails, stops, cuts, closes_late;
    int round;
    enum moment moment;
    unsigned microseconds;
    _Atomic double struck; /* when, in seconds of the monotonic clock; 0: not yet */
};

/* Ranks meet to open a communicator; if that fails for all of them, those that are left meet again,
 * as a launcher would start them. */
struct meeting {
    rondo_unique_id id;
    int host;                 /* the process that serves it */
    int stand_ins[RANKS];     /* processes that come in the place of ranks that have ended */
    _Atomic uint64_t members; /* bits; 0: nobody is called yet; NOBODY: nobody will be */
    _Atomic enum arrival arrivals[RANKS];
};

static const uint64_t NOBODY = (uint64_t)1 << 63;

struct run {
    int size;
    const char *transport;
    bool everywhere; /* else no fate strikes before all have opened the communicator */
    double timeout;
    unsigned seconds; /* after which a rank that is still there hangs */
    atomic_int ids;   /* meetings whose ids are there */
    struct meeting meetings[MEETINGS];
    struct fate fates[RANKS];
    struct said said[RANKS];
};

/* The monotonic clock, which all processes share. */
double soak_now(void);
/* The number that a rank has among some of them. */
int soak_index(uint64_t members, int rank);
/* soak_device.c, where it is linked in: the rank's calls are then on a CUDA device. */
bool soak_device_open(int rank) __attribute__((weak));
void soak_device_close(void) __attribute__((weak));
rondo_result soak_device_all_reduce(const uint64_t *input, uint64_t *output, size_t count,
                                    rondo_op op, rondo_comm *comm) __attribute__((weak));
/* soak_judge.c: true if all ranks did what is asked of them; says what is wrong. */
bool soak_judge(const struct run *run, const int *statuses, uint64_t seed);
/* These count in all runs: calls that faults.c has spoilt; ranks that were left out as one was cut
 * off. */
extern unsigned long soak_struck, soak_left_out;

/* soak_leaks.c: what a process has. */
struct holdings {
    int fds, threads, maps;
};
struct holdings soak_holdings(void);
/* True if it still has more after so many seconds, with a sentence. */
bool soak_holds_more(const struct holdings *before, double seconds, char *text, size_t size);
/* Records of ranks are in a folder of these runs; false: there is none. */
bool soak_files_begin(void);
bool soak_files_are_gone(const struct run *run, const pid_t *pids, uint64_t seed);
void soak_files_end(void);

/* All that a rank does. */
void soak_live(struct run *run, int rank);

#endif
