/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuning.h - everything that is tuned: what was measured, what follows from how many ranks share
 * how many cores, and the numbers that benchmarks on several machines have told (tuning.c).
 *
 * It is made while a communicator opens, and does not change afterwards; what is found out while
 * calls run is a trial (trial.h), whose rules are here. A split inherits all of it in one
 * assignment and fits it to its own ranks. Whatever a plan or the choice of one depends on is the
 * same on every rank; `wait`, `ll_depths` and `looks_per_tcp` are the same on all ranks of a host.
 */
#ifndef RONDO_COMM_STATE_TUNING_H
#define RONDO_COMM_STATE_TUNING_H

#include "collectives/select/select.h"
#include "comm/state/trial.h"
#include "comm/state/wait.h"
#include "plan/exec.h"

struct comm_settings;

/* The count of a collective is cut into these segments. */
struct tuning_segments {
    size_t slot_bytes; /* a message has at most so many */
    size_t alone;      /* ... or so many, if then one segment is enough; 0: never */
    uint32_t parts;    /* of a slot, a power of 2; of all slots no more than ll_depths.inlined */
    bool in_one_place; /* all segments lie in the same place, which stays in the cache */
    int slices_most; /* that a segment between groups may be cut into, see struct grouping's cut */
};

/* Messages between groups shall be so long, as each has a cost of its own; longer ones mean longer
 * segments, of which fewer are under way at once (docs/performance_networks.md). */
struct tuning_messages {
    size_t few_segments;
    size_t good, good_of_many; /* bytes; with more segments than that */
};

struct tuning {
    struct link_costs costs; /* measured, or RONDO_COSTS */
    bool reads_across;       /* cross-memory attach works, and is allowed */
    bool tries_reads;        /* calls try whether they are faster with it */
    int streams;             /* past the cache into slots: 1 yes, 0 no, -1 calls try */
    unsigned past_cache;     /* what calls begin to store that way (PAST_CACHE_...) */
    size_t long_output;      /* bytes from which on caches may have no use for an output */
    struct trial_rules reads, stores, long_stores, pair_stores; /* pair: a send, or a receive */
    size_t long_slot_bytes; /* of slots over TCP, at least what other slots have */
    struct tuning_segments segments[RONDO_COLLECTIVES];
    struct tuning_messages messages;
    struct wait_policy wait;
    struct link_depths ll_depths; /* for short messages that are under way */
    unsigned looks_per_tcp;       /* beside RDMA TCP is looked at once in so many (a power of 2) */
};

/* Before ranks know of each other. */
void tuning_init(struct tuning *tuning, const struct comm_settings *settings);
/* Fit it to all ranks of the communicator, by their endpoints and links. */
void tuning_fit(rondo_comm *comm);

#endif
