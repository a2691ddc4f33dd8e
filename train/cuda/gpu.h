/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h - the GPU of this process, for `rondo train --memory cuda`.
 *
 * What computes is a table (arithmetic.h) and a function (optimizer.h) as on the host; they queue
 * their work on one stream, and the exchange of gradients (rondo/ddp.h) has another one. Driver and
 * cuBLAS are loaded when they are wanted. Where the program was built without CUDA, cuda/absent.c
 * says so.
 */
#ifndef RONDO_TRAIN_CUDA_GPU_H
#define RONDO_TRAIN_CUDA_GPU_H

#include "train/model/optimizer.h"

/* Checks that there is what a training on GPUs needs; a sentence says what is missing. */
rondo_result gpu_check(void);
/* Take the device of this process, and make it the calling thread's current one. */
rondo_result gpu_open(void);
void gpu_close(void); /* may be called without gpu_open() */

extern const struct arithmetic gpu_arithmetic;

rondo_result gpu_optimize(const struct optimizer_step *step, double *ret_norm);
/* Fills in what the exchange has to know of the device. */
void gpu_exchange(rondo_ddp_device *ret_device);

#endif
