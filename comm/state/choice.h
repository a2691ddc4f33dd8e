/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - what was decided for a call, and the decisions that a communicator remembers. */
#ifndef RONDO_COMM_STATE_CHOICE_H
#define RONDO_COMM_STATE_CHOICE_H

#include "collectives/select/cost.h"
#include "comm/state/board.h"
#include "comm/state/operation.h"
#include "comm/state/reads.h"
#include "comm/state/stores.h"
#include "plan/exec.h"

#include <stdbool.h>

enum { CHOICES = 256 };

/* The key by which a choice of algorithm is made and remembered; equal on every rank. */
struct choice_key {
    rondo_collective collective;
    rondo_type type;
    rondo_op op;
    int root;
    size_t count;
    const char *algorithm; /* a static name; NULL: as configured */
    bool no_peer_memory;   /* a rank's buffers can't be reached by its peers */
    /* The meaning of `op` when the call was made; NULL: its meaning now. Not part of what is
     * remembered. */
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
    struct call_record record; /* what the ranks were asked for, whichever path they take */
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
