/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - what the host tells a kernel: one struct by value, of types that have the same size in
 * every compiler. Included by C on the host and by the kernels.
 */
#ifndef RONDO_CUDA_KERNELS_CALLS_H
#define RONDO_CUDA_KERNELS_CALLS_H

#include <stdint.h>

enum {
    CUDA_SOURCES_MAX = 64,
    CUDA_DESTINATIONS_MAX = 64,
    CUDA_OPERANDS_MAX = CUDA_SOURCES_MAX + CUDA_DESTINATIONS_MAX,
};

/*
 * The place of an operand. Direct: at `address` + `offset`. Indirect: `address` is that of a 64-bit
 * word which the kernel reads when it runs, so that it may be written after the launch:
 *
 *     | region : 16 | offset : 48 |     the memory is at regions[region].base + offset
 *
 * The word may come from a peer. It is checked: a region that is not in the table, or a range that
 * does not lie within it, makes the kernel do nothing but store CUDA_CALL_BAD_OPERAND + the index
 * of the operand in the call's error word. So does `gate`, if it is not 0: that many bytes behind
 * the word is one of 32 bits that whose memory it is sets when it takes the memory back.
 */
enum { CUDA_INDIRECT = 1 };
struct cuda_operand {
    uint64_t address;
    uint64_t offset; /* bytes */
    uint32_t flags;  /* 0 or CUDA_INDIRECT */
    uint32_t gate;
};

struct cuda_region {
    uint64_t base;
    uint64_t bytes; /* 0: none */
};

#define CUDA_WORD_REGION_SHIFT 48
#define CUDA_WORD_OFFSET_MASK  ((UINT64_C(1) << CUDA_WORD_REGION_SHIFT) - 1)
#define CUDA_CALL_BAD_OPERAND  1
/* The executor of plans stores this bit, and below it the rank of the peer whose word is wrong. */
#define CUDA_CALL_BAD_PEER (UINT32_C(1) << 31)

/* Kinds of elements: signed and unsigned integers of a width share one. */
enum cuda_kind {
    CUDA_KIND_INT8,
    CUDA_KIND_INT16,
    CUDA_KIND_INT32,
    CUDA_KIND_INT64,
    CUDA_KIND_FLOAT16,
    CUDA_KIND_BFLOAT16,
    CUDA_KIND_FLOAT32,
    CUDA_KIND_FLOAT64,
    CUDA_KIND_E4M3,
    CUDA_KIND_E5M2,
};

/* The arithmetic is how elements are combined: a kernel_op and what a kernel_call adds to it. */
struct cuda_arithmetic {
    uint64_t scale;    /* bits of the accumulating type */
    uint32_t divisor;  /* 0 or 1: nothing to finish */
    int32_t scaled;    /* the source that `scale` is for, -1: none */
    uint8_t function;  /* enum kernel_function */
    uint8_t order;     /* enum kernel_order */
    uint8_t is_signed; /* integers */
    uint8_t unused;
    uint32_t restore; /* bits of a float32, of kernel_op; 0: nothing to restore */
};

struct cuda_reduce_argument {
    struct cuda_arithmetic arithmetic;
    uint64_t count;
    uint64_t regions; /* address of the table; used by indirect operands only */
    uint64_t error;   /* address of a 32-bit word that the kernel may store an error in, or 0 */
    uint32_t region_count;
    uint16_t sources, destinations;
    struct cuda_operand operands[CUDA_OPERANDS_MAX]; /* sources, then destinations */
};

/* Copies that need no order among each other, in one launch. Operand 2 i is where item i comes
 * from, 2 i + 1 where it goes to: so errors count them. */
enum { CUDA_COPIES_MAX = 56 };
struct cuda_copies_item {
    struct cuda_operand from, to;
    uint64_t bytes;
};

struct cuda_copies_argument {
    uint64_t regions, error; /* as above */
    uint32_t region_count, count;
    struct cuda_copies_item items[CUDA_COPIES_MAX];
};

#endif
