/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvls.h - calls through multicast of NVSwitch (cuda/nvls.h), where the devices of all ranks are
 * one team that the driver makes a multicast object for.
 */
#ifndef RONDO_COMM_GPU_NVLS_NVLS_H
#define RONDO_COMM_GPU_NVLS_NVLS_H

#include "comm/gpu/plan.h"
#include "cuda/nvls.h"

struct gpu_nvls {
    struct cuda_nvls *team;
    unsigned blocks;    /* that every rank's kernels may have */
    size_t least_bytes; /* of a call's longer buffer; shorter ones have other ways */
    bool any_order;     /* sums of floats may be in the switch's order, not that of the contract */
};

/* ---- check.c --------------------------------------------------------------------------------- */

/* All ranks have bound memory: are calls right? *ret_outcome: RONDO_OK, or an error with its
 * sentence.
 * An error of the check itself breaks the communicator, as peers wait in it. */
rondo_result gpu_nvls_check(struct gpu_plans *plans, rondo_result *ret_outcome);

#endif
