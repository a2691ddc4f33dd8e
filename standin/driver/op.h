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

/* The passage is how an operation passes the channel of its stream (channel.h). */
enum op_passage {
    OP_HOLDS, /* the channel waits until it has ended */
    OP_GOES,  /* once begun it runs beside what is behind it in the channel */
    OP_JOINS, /* it begins before its turn has come, and ends in its turn: `enter` put into channels
               * what it consists of */
};

struct op_kind {
    CUgraphNodeType type;
    void (*run)(struct op *op);   /* on a thread of the pool, without the lock */
    void (*close)(struct op *op); /* frees what the operation owns beside itself; may be NULL */
    /* Calls `each` for all memory that it touches; NULL: that can't be told. */
    void (*places)(const struct op *op, void (*each)(const void *address, size_t size));
    /* The operation is about to enter the stream; may be NULL. Under the lock. */
    void (*enter)(struct op *op, CUstream stream);
};

struct op {
    const struct op_kind *kind;
    atomic_uint references;
};

/* `size` zeroed bytes that begin with a struct op with one reference; NULL when memory is out. */
void *op_new(size_t size, const struct op_kind *kind);
struct op *op_reference(struct op *op);
void op_release(struct op *op);

enum op_passage op_passage(const struct op *op);
