/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose.h - from a call to a plan: which algorithm, compiled once, cut for this count. What was
 * decided is remembered, so that a repeated call does no planning.
 */
#ifndef RONDO_COMM_CHOOSE_H
#define RONDO_COMM_CHOOSE_H

#include "collectives/cost.h"
#include "comm/operation.h"
#include "comm/reads.h"
#include "comm/stores.h"
#include "plan/exec.h"

#include <stdbool.h>

enum { CHOICES = 256 };

/* What a decision depends on; equal on every rank. */
struct choice_key {
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    int root;
    size_t count;
    const char *algorithm; /* a static name; NULL: as configured */
    bool no_peer_memory;   /* a rank's buffers can't be reached by its peers */
    /* What `op` meant when the call was made; NULL: what it means now. Not remembered. */
    const struct operation *made;
};

struct choice {
    struct choice_key key;
    bool valid;
    const struct plan *plan;
    struct exec_shape shape;
    bool reduces;
    struct kernel_op op; /* if it reduces */
    unsigned deaf_lanes; /* it waits for no message, and sends on these; 0: it does wait */
    uint32_t hash; /* of the key and the algorithm: a fingerprint without the sequence number */
    struct stores stores;
    struct reads reads;
    uint32_t key_hash; /* of what the ranks were asked for, whichever path they take */
};

struct plan_entry;
struct choices {
    struct choice slots[CHOICES];
    struct choice *last; /* the one used last */
    unsigned made;       /* decisions so far: one may have taken the place of another */
    struct plan_entry *plans;
    struct counts counts; /* of forms, for the cost model */
};

/* The decision for a call; *ret_choice is valid until the
 * next call of this function. Needs the turn. */
rondo_result choose(rondo_comm *comm, const struct choice_key *key, struct choice **ret_choice);
/* 32 bits of what all ranks have to agree on in a call. */
uint32_t choice_fingerprint(const struct choice_key *key);
/* Promises that the plan of a call has to keep for the operation, whoever runs it; `wanted`: the
 * algorithm's name, or "auto". */
unsigned choice_needs(const rondo_comm *comm, const struct choice_key *key,
                      const struct operation *operation, const char *wanted);
void choices_done(struct choices *choices);

#endif
