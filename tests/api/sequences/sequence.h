/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequence.h - random sequences of calls of the public API, legal and illegal ones, whose results
 * are checked.
 *
 * A sequence is a seed: what its steps do follows from that and from their numbers alone, so all
 * ranks make the same calls, and a step that is left out changes no other.
 */
#ifndef RONDO_TESTS_API_SEQUENCES_SEQUENCE_H
#define RONDO_TESTS_API_SEQUENCES_SEQUENCE_H

#include "tests/world.h"

enum { SEQUENCE_STEPS = 40, SEQUENCE_COMMS = 5 };

struct sequence {
    uint64_t seed;
    uint64_t left_out; /* bit i: step i is not made */
    int trace;         /* each step is printed as rank 0 begins it */
};

/* One rank at its steps. Every rank has a communicator at each place: perhaps of other ranks. */
struct player {
    const struct sequence *sequence;
    int step;
    rondo_comm *comms[SEQUENCE_COMMS]; /* the first is the world's, and stays */
    int comm_count;
    rondo_stream *stream;
    char *sentence; /* of what went wrong */
};

/* A step of one kind, on all ranks. */
struct step {
    const char *name;
    rondo_result (*make)(struct player *player);
};
extern const struct step legal_steps[], illegal_steps[]; /* each ends with a NULL */

/* A number below `limit` that goes by the sequence, its step, and `what`. */
unsigned sequence_draw(const struct player *player, unsigned what, unsigned limit);
/* One of the communicators. */
rondo_comm *sequence_comm(const struct player *player);

/* A world_body; the argument is a struct sequence. */
rondo_result sequence_play(rondo_comm *comm, void *sequence, char *sentence);
/* Ranks of the sequence. */
int sequence_size(const struct sequence *sequence);

#endif
