/* SPDX-License-Identifier: BSD-3-Clause */
/* devcomm.h - what executor.c and devcomm.c share. */
#ifndef RONDO_CUDA_DEVCOMM_H
#define RONDO_CUDA_DEVCOMM_H

#include "cuda/executor.h"

/* In memory of the host that the device reads and writes. */
struct devcomm_host {
    struct cuda_status status[PLAN_PROGRAMS_MAX];
    struct cuda_halt halt;
};

struct cuda_devcomm {
    struct cuda_launcher *launcher;
    struct cuda_devcomm_shape shape;
    CUdeviceptr inbox;   /* rings, LL lines and credits */
    CUdeviceptr packed;  /* CUDA_PACKED_BYTES for each end of a link */
    CUdeviceptr world;   /* struct exec_world; behind it links and peers */
    CUdeviceptr teams;   /* struct cuda_team, by program */
    CUdeviceptr regions; /* struct cuda_region: regions_each for every rank */
    CUdeviceptr known;   /* struct cuda_known_region: regions_known for every rank */
    struct devcomm_host *host;
};

struct cuda_program {
    struct cuda_devcomm *devcomm;
    struct plan plan; /* as the host reads it: without steps */
    CUdeviceptr memory, extents, scratch;
    size_t scratch_bytes;
    uint32_t awaited[PLAN_PROGRAMS_MAX];
    uint64_t out_used[PLAN_PROGRAMS_MAX], in_used[PLAN_PROGRAMS_MAX]; /* as in the argument */
    bool reduces;
};

/* Memory of the device; 0 bytes give 0. */
rondo_result devcomm_alloc(const struct cuda_devcomm *devcomm, size_t bytes,
                           CUdeviceptr *ret_memory);
void devcomm_free(const struct cuda_devcomm *devcomm, CUdeviceptr memory); /* accepts 0 */
/* Copy to the device, and wait for it. */
rondo_result devcomm_upload(const struct cuda_devcomm *devcomm, CUdeviceptr to, const void *from,
                            size_t bytes);

#endif
