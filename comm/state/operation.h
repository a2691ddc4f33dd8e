/* SPDX-License-Identifier: BSD-3-Clause */
/* operation.h - reduction operations: the built-in ones,
 * and those that users make on a communicator. */
#ifndef RONDO_COMM_STATE_OPERATION_H
#define RONDO_COMM_STATE_OPERATION_H

#include "base/lock.h"
#include "comm/recorder/call.h"
#include "kernels/kernels.h"

enum { OPERATIONS_MAX = 256, OPERATION_FIRST = 64 }; /* handles of users' operations begin there */

struct operation {
    rondo_op handle;  /* 0: free */
    enum call_op own; /* what it is, alike on all ranks; handles may differ */
    bool commutative;
    rondo_type type; /* of a scalar; RONDO_TYPES: any */
    struct kernel_op kernel;
};

struct operations {
    struct lock lock;
    rondo_op next; /* handles are never used twice, so that nothing remembers a destroyed one */
    struct operation made[OPERATIONS_MAX];
};

void operations_init(struct operations *operations);
void operations_done(struct operations *operations);

/*
 * For plans in which partial sums travel. Those of float16 and 8-bit floats may overflow where the
 * average does not, so inputs are made smaller by a power of two before they are added, and the
 * finish takes that back; a power of two rounds denormal numbers only. Other types, which have the
 * range of their sums, and other operations stay as they are. True if it has changed the operation.
 */
bool operation_scale_average(struct operation *operation);

/* True if it is a built-in operation that is defined on `type`: the quick answer for most calls. */
bool operation_is_plain(rondo_op op, rondo_type type);
/* Look up the meaning of `op` for `type` on `size` ranks; RONDO_ERROR_INVALID with a sentence if it
 * has none. */
rondo_result operations_resolve(struct operations *operations, rondo_op op, rondo_type type,
                                int size, struct operation *ret_operation);
/* True if the bits of a result depend on the order in which ranks are combined. */
bool operation_order_matters(const struct operation *operation);

#endif
