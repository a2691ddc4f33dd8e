/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stock.h - memory that communicators of one process hand on to each other on a device.
 *
 * Freeing memory waits for everything that runs on the device. A rank that closes would wait so for
 * kernels of other ranks of its process, and these may wait for this rank's next call: for ever. So
 * what a communicator gives back is kept, and freed when no communicator is on the device any more.
 * What is very large, or missing elsewhere, is freed before, if no calls are on their way, and none
 * begins to be until it is freed.
 */
#ifndef RONDO_CUDA_STOCK_H
#define RONDO_CUDA_STOCK_H

#include "base/lock.h"
#include "cuda/device.h"

struct cuda_holding;

/* All zeros but for the lock: empty. */
struct cuda_stock {
    struct lock lock;
    struct cuda_holding *holdings;
};

enum cuda_holding_kind { CUDA_HOLDING_DEVICE, CUDA_HOLDING_PINNED };

/*
 * Memory of the device, or pinned memory of the host that it reaches at the same address; its
 * contents are undefined. The device's context is current, in returning too. Any thread.
 */
rondo_result cuda_stock_take(struct cuda_stock *stock, const struct cuda_device *device,
                             enum cuda_holding_kind kind, size_t bytes, CUdeviceptr *ret_memory);
/* Accepts 0. */
void cuda_stock_return(struct cuda_stock *stock, const struct cuda_device *device,
                       CUdeviceptr memory);
/* Leave memory where it is until the context ends: somebody may still write there. */
void cuda_stock_forget(struct cuda_stock *stock, CUdeviceptr memory);
/* Free what was returned; what was not stays. */
void cuda_stock_clear(struct cuda_stock *stock, const struct cuda_device *device);

/* So many more calls of this process are on their way, on all devices. Any thread, as the next. */
void cuda_count_inflights(int more);
bool cuda_has_inflights(void);
/* The calling thread queues a call, which it counts before the second. Not within each other. */
void cuda_queueing_begin(void);
void cuda_queueing_end(void);
/* Begins a time in which nothing waits for calls: none is on its way, and who is about to queue one
 * waits until the second. False, without waiting: it is not such a time. */
bool cuda_idle_begin(void);
void cuda_idle_end(void);

#endif
