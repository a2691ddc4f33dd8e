/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvls.h - what the host and the kernel of calls through multicast (nvls.cu) share: the team's
 * memory on each device, and the launch argument.
 *
 *     | flags: [block][rank] | block 0: half 0 | half 1 | block 1: half 0 | half 1 | ...
 *
 * Every device has that memory, bound to one multicast object. A block works on its own part of it
 * and waits for the blocks of other ranks that have the same number, so blocks need no order among
 * each other. A flag is a number of a meeting, and the fingerprint of the call that meets.
 */
#ifndef RONDO_CUDA_KERNELS_NVLS_H
#define RONDO_CUDA_KERNELS_NVLS_H

#include "cuda/kernels/calls.h"

enum {
    CUDA_NVLS_RANKS = 16,
    CUDA_NVLS_BLOCKS = 32,
    CUDA_NVLS_FLAGS = 64 << 10, /* bytes of all flags, rounded up */
    CUDA_NVLS_HALF = 126 << 10, /* so that all of it is a bit less than 8 MiB */
    CUDA_NVLS_BYTES = CUDA_NVLS_FLAGS + CUDA_NVLS_BLOCKS * 2 * CUDA_NVLS_HALF,
};

enum cuda_nvls_verb { CUDA_NVLS_ALL_REDUCE, CUDA_NVLS_ALL_GATHER, CUDA_NVLS_REDUCE_SCATTER };

/* In memory of the device, one for each block: it goes on from launch to launch. */
struct cuda_nvls_block {
    uint32_t meetings, pieces;
};

struct cuda_nvls_argument {
    struct cuda_arithmetic arithmetic;
    uint64_t input, output;
    uint64_t own, all; /* the team's memory on this device, and as the multicast object's */
    uint64_t blocks;   /* struct cuda_nvls_block, by block */
    uint64_t ended;    /* a 32-bit word: blocks of this launch that have ended */
    uint64_t status;   /* struct cuda_status, the first one */
    uint64_t halt;     /* struct cuda_halt */
    uint64_t bytes;    /* of a block of the user's buffers */
    uint32_t verb;     /* enum cuda_nvls_verb */
    int32_t kind;      /* enum cuda_kind */
    uint32_t rank, size;
    uint32_t fingerprint;
    uint16_t steps[CUDA_NVLS_RANKS]; /* of the plan, for reports: where it waits for that rank */
};

#endif
