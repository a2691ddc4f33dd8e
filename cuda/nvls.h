/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvls.h - a rank's part of a team of devices that have a multicast object: memory that the switch
 * between them stores to, and adds up, on all of them at once (cuda/kernels/nvls.h).
 *
 *     cuda_nvls_open()     memory for what follows
 *     cuda_nvls_make()     one rank makes the object; its file goes to the others
 *     cuda_nvls_join()     every rank, by that file: its device is one of the team
 *     cuda_nvls_bind()     when all have joined: memory of this device
 *     cuda_nvls_launch()   when all have bound theirs: calls, one after the other
 *     cuda_nvls_leave()    no more calls of this rank
 *     cuda_nvls_close()    no more calls of any rank
 *
 * The device's context is current in all of these.
 */
#ifndef RONDO_CUDA_NVLS_H
#define RONDO_CUDA_NVLS_H

#include "cuda/executor.h"
#include "cuda/kernels/nvls.h"

struct cuda_nvls;

/* NULL: the device and its driver have multicast objects, and instructions for them; else why not,
 * to be said after "device N". */
const char *cuda_nvls_obstacle(const struct cuda_device *device);
/* `devcomm`, of the same rank, is told of calls that hang or differ; it must outlive this. */
rondo_result cuda_nvls_open(struct cuda_devcomm *devcomm, struct cuda_nvls **ret_nvls);
/* The object's file, which the caller closes. */
rondo_result cuda_nvls_make(struct cuda_nvls *nvls, int *ret_file);
rondo_result cuda_nvls_join(struct cuda_nvls *nvls, int file);
rondo_result cuda_nvls_bind(struct cuda_nvls *nvls);
/* True if kernels of peers may touch this rank's memory. */
bool cuda_nvls_is_bound(const struct cuda_nvls *nvls);
/* This rank makes no more calls, and those it made have ended: the device communicator may go,
 * memory stays bound. Accepts NULL. */
void cuda_nvls_leave(struct cuda_nvls *nvls);
/* No peer's kernel touches this rank's memory any more. Accepts NULL. */
void cuda_nvls_close(struct cuda_nvls *nvls);

struct cuda_nvls_call {
    rondo_collective collective;
    const struct kernel_op *op; /* NULL: nothing is reduced */
    size_t count, element;
    CUdeviceptr input, output;
    unsigned blocks; /* up to CUDA_NVLS_BLOCKS; the same on all ranks */
    uint32_t fingerprint;
    const uint16_t *steps; /* [rank]: of a plan, for reports */
    bool rehearsal;        /* `devcomm` is not told of it */
};

/* True if a switch can do it: the collective, and of sums the type and the operation. */
bool cuda_nvls_can(rondo_collective collective, const struct kernel_op *op);
/* Make a rehearsal that was queued end; the team is of no use then. Any thread. */
void cuda_nvls_give_up(struct cuda_nvls *nvls);
/* Queue it. Never waits. */
rondo_result cuda_nvls_launch(struct cuda_nvls *nvls, const struct cuda_nvls_call *call,
                              CUstream stream);

#endif
