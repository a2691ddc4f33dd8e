/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - the shared test world: starts ranks as threads or as processes and collects what they
 * say.
 *
 * A body runs on every rank and returns a result; only the test asserts, afterwards. Nothing here
 * uses Criterion, so that stress programs run the same bodies under ThreadSanitizer. Nothing hangs:
 * an alarm ends what takes too long.
 *
 * Data: world_fill() writes what a rank contributes, world_check_*() knows the result. Sums stay
 * within what the type represents exactly, whatever the order of addition, so a check needs no
 * tolerance (but for averages of floats).
 */
#ifndef RONDO_TESTS_WORLD_H
#define RONDO_TESTS_WORLD_H

#include "patience.h"

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORLD_RANKS = 64, WORLD_SENTENCE = 1024 };

/* Runs on one rank; `sentence` has WORLD_SENTENCE bytes for what went wrong. */
typedef rondo_result (*world_body)(rondo_comm *comm, void *argument, char *sentence);

struct world {
    int size;
    bool processes;             /* or threads */
    const rondo_config *config; /* NULL: defaults */
};

struct world_report {
    rondo_result results[WORLD_RANKS];
    int signals[WORLD_RANKS]; /* which signal ended the process of this rank, 0: none */
    char sentences[WORLD_RANKS][WORLD_SENTENCE];
    char summary[2 * WORLD_SENTENCE]; /* of the ranks that failed; "" if none did */
};

/*
 * Open a communicator over world->size ranks, run the body on each, finalize where it succeeded,
 * close. Returns how many ranks failed. Processes are forked, so call it before the process has
 * threads; they get a copy of *argument and hand results back through world_share().
 */
int world_run(const struct world *world, world_body body, void *argument,
              struct world_report *ret_report);
int world_run_threads(int size, world_body body, void *argument, struct world_report *ret_report);
int world_run_processes(int size, world_body body, void *argument, struct world_report *ret_report);

/* From now on no other process may attach to this one, nor take its files. False: not possible. */
bool world_hide(void);

/*
 * Ranks of a running world await each other's waits with these: a rank says with the first that
 * this thread of it is about to call; the second returns true when the thread of that rank waits
 * since then, be it in the call or behind it, false when it has ended.
 */
void world_will_wait(int rank);
bool world_await_rank(int rank);

/* Zeroed memory that forked processes share. Never NULL. */
void *world_share(size_t bytes);
void world_unshare(void *memory, size_t bytes);

/* Write the sentence unless there is one already, return the result. */
rondo_result world_say(char *sentence, rondo_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Data ------------------------------------------------------------------------------------ */

enum { WORLD_MOVED = -1 }; /* as an operation: data that is only moved, so any bits are good */

struct world_data {
    rondo_type type;
    rondo_op op; /* RONDO_SUM ... RONDO_BXOR, or WORLD_MOVED */
    int size;    /* ranks that contribute */
    uint64_t seed;
};

/* Elements 0 .. count-1 of what `rank` contributes. Any alignment. */
void world_fill(const struct world_data *data, int rank, size_t count, void *to);
/* Are these elements first .. first+count-1 of that rank,
 * bit for bit? The sentence names the first wrong one. */
bool world_check_moved(const struct world_data *data, int rank, size_t first, size_t count,
                       const void *at, char *sentence);
/* Are these elements first .. first+count-1 of the reduction over all ranks? */
bool world_check_reduced(const struct world_data *data, size_t first, size_t count, const void *at,
                         char *sentence);

/* One element to and from double. Storing is for values that the type represents exactly. */
double world_load(rondo_type type, const void *element);
void world_store(rondo_type type, void *element, double value);
bool world_is_float(rondo_type type);
/* Numbers that look random and depend on both arguments only. */
uint64_t world_hash(uint64_t a, uint64_t b);

#endif
