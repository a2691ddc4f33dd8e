/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late_network.h - a network between ranks of one thread that reads memory of zero-copy sends as
 * late as it may, and puts what is expected in its place as early as it may.
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
    const char *payload; /* there, or sent zero-copy */
    size_t bytes;
    uint64_t flag;
    int channel;
    bool inlined, begun, delivered;
    char *to;
};

struct queue {
    struct message messages[PLAN_CHANNELS * (SLOTS + 1)];
    int count;
};

/* Both directions of a channel to a peer. */
struct half {
    struct connection base;
    struct member *member;
    char *inbox;
    struct link_credit *credit; /* of what this rank sends */
    struct link_credit *given;
    struct {
        uint64_t flag;
        char *at;
        size_t bytes;
    } expected;
};

struct member {
    struct job *job;
    int rank;
    struct exec_world world;
    struct execution execution;
    struct half *halves;  /* [channel * size + peer] */
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
    bool in_place, zcopies;
    int networks; /* 1, or 2: to peers of even and odd ranks */
    uint64_t chance;
    struct member members[RANKS];
    struct plan *plans[RANKS];
    long zcopy, delivered;
};

extern const struct connection_ops late_ops[2]; /* of two networks */
/* After this nothing of these bytes waits to be sent by that network, or any (NULL): it lies in
 * slots. */
void late_reclaim(struct member *member, const struct connection_ops *ops, const char *at,
                  size_t bytes);
/* Half of the next message of a pair, if there is one. */
void late_deliver(struct job *job, int from, int to);

#endif
