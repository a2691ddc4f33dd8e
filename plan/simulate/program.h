/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.h - the plans of all kinds of ranks, in the short form in which they are simulated.
 *
 * It depends on plans and machine, and not on how long a vector is: made once, run for each size.
 */
#ifndef RONDO_PLAN_SIMULATE_PROGRAM_H
#define RONDO_PLAN_SIMULATE_PROGRAM_H

#include "plan/simulate/fold.h"
#include "plan/simulate/route.h"
#include "plan/simulate/share.h"

enum op_kind {
    OP_AWAIT,   /* wait for a message of `link` */
    OP_ACQUIRE, /* wait for a free slot of it */
    OP_SETTLE,  /* wait until all its messages are given back */
    OP_FILL,    /* so many atoms of the move that follows go over it */
    OP_MOVE,    /* copy and reduce; `link` says how many fills it has */
    OP_SEND,    /* publish what was filled in */
    OP_RELEASE, /* give a slot back */
};

struct op {
    uint8_t kind;
    int32_t link;
    float copied, reduced; /* atoms; of a fill `copied` */
};

/* A program of a kind of rank. */
struct track {
    uint32_t begin, end; /* its ops */
    int32_t rank, number;
};

/* One direction of a channel between two ranks, or an access to a peer's memory. */
struct wire {
    int32_t from, to, flow; /* flow: -1 if nothing lies between the two */
    uint64_t key;
    double latency;
    bool direct, access; /* the sender's step lasts as long; it is not a link with messages */
};

/* A link that is not as it should be: of its bandwidth so much is left, 0: it has failed. */
struct simulate_fault {
    struct hop hop; /* sub -1: all of its owner's */
    double factor;
};

struct simulate_setup {
    struct machine machine;
    bool folds; /* ranks that do the same are simulated once, if nothing here tells them apart */
    const struct simulate_fault *faults;
    int fault_count;
    uint32_t steps_most; /* that all kinds of ranks may have, 0: as many as memory suggests */
};

struct programs {
    struct fold fold;
    struct machine machine;
    const struct simulate_fault *faults;
    int fault_count;
    uint32_t steps_most;
    struct op *ops;
    struct track *tracks;
    struct wire *wires;
    uint32_t op_count, op_room, track_count, track_room, wire_count, wire_room;
    int32_t *table; /* wires by their key */
    uint32_t table_size;
    struct hop *hops; /* [link of share]: what it is */
    uint32_t hop_room;
    int32_t *hop_table;
    uint32_t hop_table_size;
    struct share share;
    unsigned parts, message_atoms;
    struct route *route;
};

/* Write down what all kinds of ranks do. RONDO_ERROR_UNSUPPORTED: there are too many steps. The
 * faults of the setup stay the caller's. */
rondo_result programs_open(const struct simulate_plans *plans, const struct simulate_setup *setup,
                           struct programs **ret_programs);
void programs_close(struct programs *programs);
/* True if messages pass the link that a fault names. The programs are not folded. */
bool programs_pass(const struct programs *programs, const struct hop *fault);

#endif
