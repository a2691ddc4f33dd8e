/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late_network.h - a network between ranks of one thread that reads lent memory as late as it may,
 * and puts what is expected in its place as early as it may.
 *
 * A message moves in two halves: the first says for good where it goes, as a socket does.
 */
#ifndef RONDO_TESTS_PLAN_LATE_NETWORK_H
#define RONDO_TESTS_PLAN_LATE_NETWORK_H

#include "plan/exec.h"
#include "transport/link/connection.h"

enum { RANKS = 8, SLOTS = 4 };

struct message {
    char *slot_payload;  /* of the writer's slot */
    const char *payload; /* there, or lent */
    size_t bytes;
    uint64_t flag;
    int lane;
    bool inlined, begun, placed;
    char *to;
};

struct queue {
    struct message messages[PLAN_LANES * (SLOTS + 1)];
    int count;
};

/* Both directions of a lane to a peer. */
struct half {
    struct connection base;
    struct seat *seat;
    char *inbox;
    struct link_credit *credit; /* of what this rank sends */
    struct link_credit *given;
    struct {
        uint64_t flag;
        char *at;
        size_t bytes;
    } expected;
};

struct seat {
    struct job *job;
    int rank;
    struct exec_world world;
    struct execution execution;
    struct half *halves;  /* [lane * size + peer] */
    struct queue *queues; /* [to] */
    char *input, *output, *memory;
    size_t bytes; /* of memory */
    int calls;
};

struct job {
    rondo_collective collective;
    const struct grouping *groups;
    int size, root;
    size_t count, slot_bytes, pool_used;
    bool in_place, lends;
    int networks; /* 1, or 2: to peers of even and odd ranks */
    uint64_t chance;
    struct seat seats[RANKS];
    struct plan *plans[RANKS];
    long lent, placed;
};

extern const struct connection_ops late_ops[2]; /* of two networks */
/* Of these bytes nothing waits to be sent by that network, or any (NULL), after this: it lies in
 * slots. */
void late_settle(struct seat *seat, const struct connection_ops *ops, const char *at, size_t bytes);
/* Half of the next message of a pair, if there is one. */
void late_deliver(struct job *job, int from, int to);

#endif
