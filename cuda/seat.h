/* SPDX-License-Identifier: BSD-3-Clause */
/* seat.h - what executor.c and seat.c share. */
#ifndef RONDO_CUDA_SEAT_H
#define RONDO_CUDA_SEAT_H

#include "cuda/executor.h"

/* In memory of the host that the device reads and writes. */
struct seat_board {
    struct cuda_status status[PLAN_PROGRAMS_MAX];
    struct cuda_halt halt;
};

struct cuda_seat {
    struct cuda_launcher *launcher;
    struct cuda_seat_shape shape;
    CUdeviceptr inbox;  /* rings, shorts and credits */
    CUdeviceptr packed; /* CUDA_PACKED_BYTES for each end of a link */
    CUdeviceptr world;  /* struct exec_world; behind it links, peers, teams, segments */
    CUdeviceptr teams, segments;
    struct seat_board *board;
    _Atomic int programs; /* of the last call */
};

struct cuda_program {
    struct cuda_seat *seat;
    struct plan plan; /* as the host reads it: without steps */
    CUdeviceptr memory, device_plan, extents, scratch;
    size_t scratch_bytes;
    uint32_t awaited[PLAN_PROGRAMS_MAX];
    uint64_t out_used[PLAN_PROGRAMS_MAX], in_used[PLAN_PROGRAMS_MAX]; /* as in the argument */
    bool reduces;
};

/* Memory of the device; 0 bytes give 0. */
rondo_result seat_alloc(const struct cuda_seat *seat, size_t bytes, CUdeviceptr *ret_memory);
void seat_free(const struct cuda_seat *seat, CUdeviceptr memory); /* accepts 0 */
/* Copy to the device, and wait for it. */
rondo_result seat_upload(const struct cuda_seat *seat, CUdeviceptr to, const void *from,
                         size_t bytes);

#endif
