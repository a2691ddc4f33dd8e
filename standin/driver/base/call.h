/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call.h - what every function of the stand-in does first, and the one lock of the driver.
 *
 * All tables (contexts, streams, allocations, ...) hang on one lock: the stand-in is there to be
 * right, not fast. Nobody holds it while work of a stream runs, nor while waiting (except on a
 * condition).
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Says whether this call may go ahead: not before cuInit(), in a forked child, inside a host
 * function, or when it is the call that CUDA_STANDIN_FAIL wants to fail. `function` is __func__;
 * its version suffix does not matter.
 */
CUresult call_enter(const char *function);

/* This thread runs a host function of a stream (cuLaunchHostFunc): it may neither call the
 * driver nor touch device memory meanwhile. */
void call_in_host_function(bool inside);

void call_lock(void);
void call_unlock(void);

/* Sleeps until `condition` is signalled; the lock is given up meanwhile. */
void call_wait(pthread_cond_t *condition);

/*
 * A thread that makes, maps or frees memory of a device holds this; the lock above comes after it.
 * Real drivers have such a lock, and who frees holds it until the device has done all work that was
 * queued before; so here, unless CUDA_STANDIN_FREE_LOCKS=0.
 */
void call_lock_memory(CUdevice device);
void call_unlock_memory(CUdevice device);

/* A setting of the stand-in: CUDA_STANDIN_<name>, or `otherwise` when it is not set. */
uint64_t call_setting(const char *name, uint64_t otherwise);

/* Numbers that are never given out twice by this process: ids of contexts, streams, allocations. */
uint64_t call_unique(void);
