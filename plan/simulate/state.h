/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - a simulation on its way: what run.c and records.c share. */
#ifndef RONDO_PLAN_SIMULATE_STATE_H
#define RONDO_PLAN_SIMULATE_STATE_H

#include "plan/simulate/queue.h"
#include "plan/simulate/simulate.h"

enum track_wait { WAIT_NONE, WAIT_MESSAGE, WAIT_SLOT, WAIT_TURN, WAIT_MOVE, WAIT_SEND };

struct track_state {
    uint32_t at, segment;
    uint32_t pending; /* parts of a move that are not over */
    uint32_t last;    /* its latest record */
    uint8_t wait;     /* enum track_wait */
    double since;     /* of the wait, or of the move */
    double timer;     /* end of the rank's own part of a move */
    uint64_t moves;   /* for the jitter */
};

struct wire_state {
    /* Messages: published, begun to travel, arrived; waited for and used; slots taken and back. */
    uint32_t sent, started, arrived, awaited, acquired, freed;
    double fill;                     /* bytes of the message that is being written */
    double began;                    /* when the message on its way began */
    int32_t owner, sender, receiver; /* tracks: of an access; that wait */
    uint32_t cause, last;            /* records: why the flow began, and its latest */
};

struct rank_state {
    int32_t first, tracks; /* its tracks */
    int moving;
    unsigned waiting; /* its tracks that want to move: a set of bits */
    double slow;
};

/* A message has its place at [wire * slots + number % slots]. */
struct message_state {
    double bytes, arrives, free; /* times: of its arrival, and of its slot's return */
    uint32_t cause, back;        /* records: of its arrival, of the return */
};

struct simulation {
    struct programs *programs;
    const struct simulate_call *call;
    struct simulate_result *result;
    struct queue queue;
    struct track_state *tracks;
    struct wire_state *wires;
    struct rank_state *ranks;
    struct message_state *messages;
    int32_t *wire_of_flow;
    double *segment_ends;
    double now;
    double atom, last_atom; /* bytes of an atom, and in the last segment of all */
    uint32_t left;          /* tracks that are not through */
    uint32_t record_room;
    bool out_of_memory;
};

/* Returns how many segments to run: more where they cost little, as a way fills slowly. */
int state_segments(const struct programs *programs);
/* Cut the vector. RONDO_ERROR_UNSUPPORTED: slots are too small. */
rondo_result state_cut(struct simulation *simulation);
/* Take memory; false: there is none. The caller frees it in any case. */
bool state_open(struct simulation *simulation);
void state_begin(struct simulation *simulation);
/* Adds the time of segments that were not run. */
void state_extrapolate(struct simulation *simulation);
/* Returns a number from 0 to 1, always the same of the same move. */
double state_chance(uint64_t seed, uint64_t rank, uint64_t move);
/* Note that something took time; returns its number, 0: nothing is noted. */
uint32_t record_add(struct simulation *simulation, struct record record);
/* The sentence of a simulation in which nothing happens any more. */
rondo_result explain_standstill(const struct simulation *simulation);

#endif
