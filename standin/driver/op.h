/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.h - one operation of a stream: copy, set, kernel, memory operation, ... It never changes once
 * it is made, so a graph can run it as often as it likes, also several times at once.
 *
 * A concrete operation has struct op as its first member.
 */
#pragma once

#include <cuda.h>
#include <stdatomic.h>
#include <stddef.h>

struct op;

struct op_kind {
    CUgraphNodeType type;
    void (*run)(struct op *op);   /* on a thread of the pool, without the lock */
    void (*close)(struct op *op); /* frees what the operation owns beside itself; may be NULL */
    /* Calls `each` for all memory that it touches; NULL: that can't be told. */
    void (*places)(const struct op *op, void (*each)(const void *address, size_t size));
};

struct op {
    const struct op_kind *kind;
    atomic_uint references;
};

/* `size` zeroed bytes that begin with a struct op with one reference; NULL when memory is out. */
void *op_new(size_t size, const struct op_kind *kind);
struct op *op_reference(struct op *op);
void op_release(struct op *op);
