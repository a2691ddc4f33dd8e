/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * point.h - a place on a CUDA stream that other streams await, of any device, in graphs too.
 *
 * No host function takes part: CUDA may run those one after the other, so that one which waits for
 * another one would wait for ever.
 *
 * A thread without a context asks about its stream with `spare`, a context that is in use; NULL:
 * there is none, and such a thread is refused. Any thread may call, but no host function.
 */
#ifndef RONDO_CUDA_POINT_H
#define RONDO_CUDA_POINT_H

#include "cuda/device.h"

struct cuda_point;

rondo_result cuda_point_make(const struct cuda_driver *driver, CUstream stream, CUcontext spare,
                             struct cuda_point **ret_point);
/* Orders what `stream` gets from now on after the point. */
rondo_result cuda_point_await(const struct cuda_point *point, CUstream stream, CUcontext spare);
/* Gives the point back, which need not be reached. */
void cuda_point_drop(struct cuda_point *point);

#endif
