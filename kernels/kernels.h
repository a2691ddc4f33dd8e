/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h - arithmetic: k sources combined into m destinations, for every type and operation.
 *
 * The sum of k sources has a defined association, so that it gives the same bits at every CPU
 * level:
 *   KERNEL_FOLD      ((s0 + s1) + s2) + s3 ...
 *   KERNEL_BALANCED  split at the largest power of two below k, recursively:
 *                    (s0 + s1) + (s2 + s3) for 4, ((s0 + s1) + (s2 + s3)) + s4 for 5
 * 16- and 8-bit floats are widened to float32, combined there, and rounded once (to nearest even)
 * at the end. Own input that is scaled is rounded too, as a peer would get it: all ranks add up the
 * same numbers.
 */
#ifndef RONDO_KERNELS_KERNELS_H
#define RONDO_KERNELS_KERNELS_H

#include "rondo/rondo.h"

#include <stdbool.h>

enum kernel_order { KERNEL_FOLD, KERNEL_BALANCED };

enum kernel_function {
    KERNEL_SUM,
    KERNEL_PROD,
    KERNEL_MIN,
    KERNEL_MAX,
    KERNEL_BAND,
    KERNEL_BOR,
    KERNEL_BXOR,
    KERNEL_USER,
    KERNEL_FUNCTIONS
};

/* An operation on a type, resolved once per call. */
struct kernel_op {
    rondo_type type;
    enum kernel_function function;
    bool has_scale; /* multiply own input by `scale` first (pre-multiplied sum) */
    float restore;  /* finish: after the division multiply narrow floats by this; 0: do not */
    union {
        double real;      /* floats */
        int64_t integer;  /* signed */
        uint64_t natural; /* unsigned */
    } scale;
    unsigned divisor; /* finish: divide by this (average); 0 or 1: nothing to finish */
    rondo_op_function user;
    void *context;
};

struct kernel_call {
    const void *const *sources;
    void *const *destinations; /* each may equal a source exactly, other overlaps are not allowed */
    int source_count;          /* any number >= 1; 1 copies (and scales, and finishes) */
    int destination_count;     /* any number >= 1 */
    size_t count;              /* elements, may be 0 */
    enum kernel_order order;
    int scaled; /* which source `op->scale` applies to, -1: none */
    bool finish;
    bool our_mode; /* the caller knows that this thread has our floating-point mode */
};

/* Any alignment. No allocation, no failure: what can't be computed was refused by kernel_can().
 * Thread-safe. In the floating-point mode of base/caller/float_mode.h, `user` as well. */
void kernel_reduce(const struct kernel_op *op, const struct kernel_call *call);
/* Bytes of an element: rondo_type_size() without the call, for types that are known to be valid. */
extern const unsigned char kernel_type_bytes[RONDO_TYPES];
/* True if the operation is defined on the type; bitwise ones are on integers only. */
bool kernel_can(rondo_type type, enum kernel_function function);
/* Copy; large ones may bypass the cache. Ranges do not overlap. */
void kernel_copy(void *to, const void *from, size_t bytes);
/* Copy past the cache, for lines that another core reads next. Other cores may see later stores
 * first, until kernel_stream_end(). */
void kernel_stream(void *to, const void *from, size_t bytes);
void kernel_stream_end(void);

/* Returns the CPU level in use ("plain", "avx2", "avx512", "neon"); it is chosen at first use, and
 * RONDO_CPU forces one. */
const char *kernel_level(void);
/* For tests and benchmarks: use this level from now on. False if this machine or build lacks it. */
bool kernel_use_level(const char *level);
/* Names of the levels this machine can run, weakest first, NULL-terminated. */
const char *const *kernel_levels(void);

/* One element to and from double, exactly rounded (nearest even); for tests, checks and tools. */
double kernel_load(rondo_type type, const void *element);
void kernel_store(rondo_type type, void *element, double value);

#endif
