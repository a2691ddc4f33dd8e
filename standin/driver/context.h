/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h - contexts: one primary context per device, and those of cuCtxCreate().
 */
#pragma once

#include "standin/driver/base/devices.h"
#include "standin/driver/channel.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct CUctx_st {
    struct CUctx_st *next; /* all contexts ever made, so that an old handle is known as such */
    CUdevice device;
    uint64_t id;
    bool primary;
    unsigned users; /* retains of a primary context; 1 for another one until it is destroyed */
    unsigned flags;
    CUstream streams; /* all that have work or a handle */
    CUstream legacy;
    struct channels channels;
    unsigned kernels;     /* that run */
    pthread_cond_t quiet; /* none runs any more */
    size_t stack;         /* for a lane of a kernel: the limit, or what the largest kernel took */
    bool reaches[DEVICE_LIMIT]; /* peer access that was enabled, by device */
};

/* call_enter(), then the context that is current to this thread. */
CUresult context_enter(const char *function, CUcontext *ret_context);

/* The other functions are called under the lock. Is it one, and in use? */
bool context_valid(CUcontext context);

/* True if it is the handle of a stream of any context in use. */
bool context_stream(CUstream handle);

/* Any stream that takes part in the capture, or NULL. */
struct capture;
CUstream context_captured(const struct capture *capture);

/* True if work of the context may touch memory of the device. */
bool context_reaches(CUcontext context, CUdevice device);
