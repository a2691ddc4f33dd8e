/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - what was decided for a call, and the decisions that a communicator remembers. */
#ifndef RONDO_COMM_STATE_CHOICE_H
#define RONDO_COMM_STATE_CHOICE_H

#include "collectives/select/cost.h"
#include "comm/recorder/recorder.h"
#include "comm/state/status.h"
#include "comm/state/operation.h"
#include "comm/state/trial.h"
#include "plan/exec.h"

#include <stdbool.h>

enum { CHOICES = 256 };

/* The key by which a choice of algorithm is made and remembered; equal on every rank. */
struct choice_key {
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    int root;
    int own; /* an enum call_op: what an operation of the user's own is; 0: `op` is built in */
    size_t count;
    const char *algorithm; /* a static name; NULL: as configured */
    bool no_peer_memory;   /* a rank's buffers can't be reached by its peers */
    /* The meaning of `op` when the call was made; NULL: its meaning now. Not part of what is
     * remembered. */
    const struct operation *made;
};

/* The operation as ranks compare it. Handles of own operations may differ between ranks. */
static inline int choice_op(const struct choice_key *key)
{
    return key->own ? key->own : key->op;
}

uint64_t choice_mix(uint64_t value); /* a hash of it */
/* A hash of what ranks must agree on. The two ends of a message between two ranks hash alike. */
uint64_t choice_hash(const struct choice_key *key);
/* 32 bits of that. */
uint32_t choice_fingerprint(const struct choice_key *key);
/* Returns what a fingerprint has of the algorithm's name. */
uint32_t choice_name_hash(const char *name);

/*
 * Plain memory is read across processes, or staged in slots: a read costs a system call and
 * a look at every page, and which of the two wins changes with the size, the machine and the caches
 * (docs/performance.md). A rank that finds slots quicker hides its plain input, and then no rank
 * reads across in that call. So ranks need not find the same: one that hides decides for all. Who
 * has no input does not decide: nobody would notice.
 */
enum { READS_ACROSS, READS_STAGED };

struct choice {
    struct choice_key key;
    bool valid;
    const struct plan *plan;
    struct exec_shape shape;
    bool reduces;
    struct kernel_op op;    /* if it reduces */
    unsigned deaf_channels; /* it waits for no message, and sends on these; 0: it does wait */
    uint32_t hash; /* of the key and the algorithm: a fingerprint without the sequence number */
    struct trial stores;       /* ways are sums of PAST_CACHE_... (plan/exec.h) */
    struct trial reads;        /* ways are READS_... */
    double ended;              /* of a message: when the last one that was tried did */
    struct recorder_kind kind; /* of its calls, whichever path they take */
};

struct plan_entry;
struct choices {
    struct choice slots[CHOICES];
    struct choice *last; /* the one used last */
    unsigned made;       /* decisions so far: one may have taken the place of another */
    struct plan_entry *plans;
    struct counts counts; /* of forms, for the cost model */
};

#endif
