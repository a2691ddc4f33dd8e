/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h - several copies on the device as one kernel: a launch costs more than a short copy. */
#ifndef RONDO_CUDA_COPIES_H
#define RONDO_CUDA_COPIES_H

#include "cuda/kernels/calls.h"
#include "cuda/module.h"

struct cuda_copies_call {
    const struct cuda_copies_item *items; /* none writes what another reads or writes */
    unsigned count;                       /* 0 .. CUDA_COPIES_MAX */
    /* For indirect operands, as in reduce.h. */
    CUdeviceptr regions;
    unsigned region_count;
    CUdeviceptr error;
};

/* Queue it. Never waits. The device's context is current. */
rondo_result cuda_copies(const struct cuda_launcher *launcher, const struct cuda_copies_call *call,
                         CUstream stream);

#endif
