/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.c - the life of an operation: queues and graph nodes hold references to it.
 */
#include "standin/driver/op.h"

#include <stdlib.h>

void *op_new(size_t size, const struct op_kind *kind)
{
    struct op *op = calloc(1, size);
    if (op) {
        op->kind = kind;
        atomic_init(&op->references, 1);
    }
    return op;
}

struct op *op_reference(struct op *op)
{
    atomic_fetch_add_explicit(&op->references, 1, memory_order_relaxed);
    return op;
}

enum op_passage op_passage(const struct op *op)
{
    CUgraphNodeType type = op->kind->type;
    if (op->kind->enter)
        return OP_JOINS;
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                   type == CU_GRAPH_NODE_TYPE_MEMSET
               ? OP_GOES
               : OP_HOLDS;
}

void op_release(struct op *op)
{
    /* Release by all, acquire by the last: it sees what the others did with it. */
    if (!op || atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) != 1)
        return;
    if (op->kind->close)
        op->kind->close(op);
    free(op);
}
