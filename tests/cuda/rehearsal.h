/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rehearsal.h - the plans of all ranks, run by the executor on the device, a stream for each rank,
 * and by the host's executor: the outputs have to be the same.
 */
#ifndef RONDO_TESTS_CUDA_REHEARSAL_H
#define RONDO_TESTS_CUDA_REHEARSAL_H

#include "collectives/algorithm.h"
#include "cuda/executor.h"
#include "tests/cuda/gpu.h"

enum { REHEARSAL_RANKS = 8 };

/* Ranks that are connected; what they do one after the other goes over the same links. */
struct troupe {
    struct gpu gpu;
    int size;
    struct cuda_devcomm_shape shape;
    struct cuda_devcomm *devcomms[REHEARSAL_RANKS];
    CUstream streams[REHEARSAL_RANKS];
    uint32_t calls;
    /* Of two regions for each rank, and behind it the number of its changes; 0: the device
     * communicators have tables of their own. */
    CUdeviceptr table;
    uint32_t changes;
};

/* `shape`: slots, slot_bytes, start, regions_known. False: the sentence is in fail_sentence(). */
bool troupe_open(struct troupe *troupe, int size, const struct cuda_devcomm_shape *shape);
void troupe_close(struct troupe *troupe);

struct rehearsal {
    const struct algorithm *algorithm;
    rondo_collective collective;
    int root;
    struct kernel_op op; /* of collectives that reduce; the type always */
    size_t count;
    unsigned blocks; /* of each team */
    bool in_place;   /* input and output begin at the same place */
    int repeat;      /* launches of the same, one behind the other */
    uint64_t random;
};

/* NULL: as on the host. Else what is wrong, valid until the next call. */
const char *rehearse(struct troupe *troupe, const struct rehearsal *rehearsal);

/* The plans of `plans` on the host, by turns on this thread; false: they did not end. */
bool rehearse_on_host(struct plan *const *plans, const struct cuda_devcomm_shape *shape,
                      const struct rehearsal *rehearsal, char *const *inputs, char *const *outputs);

#endif
