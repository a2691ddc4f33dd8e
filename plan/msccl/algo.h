/* SPDX-License-Identifier: BSD-3-Clause */
/* algo.h - what an algorithm of MSCCL says, read from XML and not yet understood. */
#ifndef RONDO_PLAN_MSCCL_ALGO_H
#define RONDO_PLAN_MSCCL_ALGO_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MSCCL_RANKS = 64,
    MSCCL_CHUNKS = 4096, /* of a buffer */
    MSCCL_CHANNELS = 4,
    MSCCL_NAME = 24,
};

/* Bits that say what a step does; sums of them are s, r, rcs, rrc, rrs, rrcs, cpy, re and nop. */
enum {
    MSCCL_RECEIVES = 1,
    MSCCL_SENDS = 2,
    MSCCL_ADDS = 4,   /* what is at the source */
    MSCCL_STORES = 8, /* at the destination */
};

struct msccl_step {
    unsigned does;
    char from, to;             /* buffers: i, o, s */
    int from_at, to_at, count; /* in chunks */
    int block, behind;         /* waits until that block of the rank is through that step; -1 */
    uint32_t line;
};

struct msccl_block {
    int rank, id, send, receive, channel; /* peers: -1, none */
    size_t first, count;                  /* of its steps */
};

struct msccl_algo {
    char name[MSCCL_NAME];
    rondo_collective collective;
    int ranks;
    int chunks[MSCCL_RANKS][3]; /* of i, o, s */
    bool seen[MSCCL_RANKS];
    struct msccl_block *blocks;
    size_t block_count, block_room;
    struct msccl_step *steps;
    size_t step_count, step_room;
};

/* To be closed in any case. */
rondo_result msccl_algo_open(const char *path, const char *text, size_t length,
                             struct msccl_algo *algo);
void msccl_algo_close(struct msccl_algo *algo);

#endif
