/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.c - contexts, which of them is current to a thread, peer access.
 *
 * A context is never freed, so that an old handle gives an error, not a crash. When its last user
 * lets go of it, its work is finished, then its streams and its memory go.
 */
#include "standin/driver/context.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/event.h"
#include "standin/driver/memory.h"
#include "standin/driver/module.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <stdlib.h>

enum { STACK = 64 };

static CUcontext contexts;
static CUcontext primaries[DEVICE_LIMIT];
static _Thread_local CUcontext stack[STACK]; /* the last one is current */
static _Thread_local int depth;

bool context_valid(CUcontext context)
{
    for (CUcontext known = contexts; known; known = known->next) {
        if (known == context)
            return known->users > 0;
    }
    return false;
}

bool context_stream(CUstream handle)
{
    for (CUcontext context = contexts; context; context = context->next) {
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            if (stream == handle)
                return !stream->destroyed;
        }
    }
    return false;
}

CUstream context_captured(const struct capture *capture)
{
    for (CUcontext context = contexts; context; context = context->next) {
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            if (stream->capture == capture)
                return stream;
        }
    }
    return NULL;
}

bool context_reaches(CUcontext context, CUdevice device)
{
    return context->device == device || context->reaches[device];
}

CUresult context_enter(const char *function, CUcontext *ret_context)
{
    CUresult result = call_enter(function);
    if (result)
        return result;
    if (!depth || !stack[depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    call_lock();
    bool valid = context_valid(stack[depth - 1]);
    call_unlock();
    if (!valid)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ret_context = stack[depth - 1];
    return CUDA_SUCCESS;
}

static bool start(CUcontext context)
{
    context->legacy = queue_open(context, CU_STREAM_DEFAULT, 0);
    context->users = context->legacy ? 1 : 0;
    return context->users;
}

static CUcontext create(CUdevice device, bool primary)
{
    CUcontext context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->device = device;
    context->primary = primary;
    context->id = call_unique();
    context->stack = DEVICE_STACK;
    pthread_cond_init(&context->quiet, NULL);
    channel_init(&context->channels);
    context->next = contexts;
    contexts = context;
    return context;
}

/* The end of a context's use. Under the lock, which is given up while work is waited for. */
static void stop(CUcontext context)
{
    queue_drain_context(context);
    event_close_all(context);
    module_close_all(context);
    memory_free_all(context);
    context->users = 0;
    context->legacy = NULL;
    for (int i = 0; i < DEVICE_LIMIT; i++)
        context->reaches[i] = false;
    for (CUstream stream = context->streams, next; stream; stream = next) {
        next = stream->next;
        if (!stream->destroyed)
            stream_close(stream);
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!ret_context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    if (!primaries[device])
        primaries[device] = create(device, true);
    CUcontext context = primaries[device];
    bool ready = context && context->users;
    if (ready)
        context->users++;
    else
        ready = context && start(context);
    call_unlock();
    if (!ready)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    CUcontext context = primaries[device];
    if (!context || !context->users)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (context->users == 1)
        stop(context);
    else
        context->users--;
    call_unlock();
    return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    if (primaries[device] && primaries[device]->users)
        stop(primaries[device]);
    call_unlock();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    CUcontext context = primaries[device];
    *flags = context ? context->flags : 0;
    *active = context && context->users;
    call_unlock();
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *ret_context, CUctxCreateParams *parameters, unsigned flags,
                     CUdevice device)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!ret_context || parameters || depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_lock();
    CUcontext context = create(device, false);
    bool ready = context && start(context);
    call_unlock();
    if (!ready)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->flags = flags;
    stack[depth++] = context;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    if (!context_valid(context) || context->primary)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else
        stop(context);
    call_unlock();
    if (!result && depth && stack[depth - 1] == context)
        depth--;
    return result;
}

/* NULL is no context, which is fine too. */
static CUresult enter_with(const char *function, CUcontext context)
{
    CUresult result = call_enter(function);
    if (result || !context)
        return result;
    call_lock();
    bool valid = context_valid(context);
    call_unlock();
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = enter_with(__func__, context);
    if (result)
        return result;
    depth -= depth > 0;
    if (context)
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    CUresult result = enter_with(__func__, context);
    if (result)
        return result;
    if (!context || depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUresult result = context ? enter_with(__func__, context) : context_enter(__func__, &context);
    if (result)
        return result;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    call_lock();
    result = capture_forbid_context(context);
    if (!result)
        queue_drain_context(context);
    call_unlock();
    return result;
}

/* Only the limit of stacks means something here. */
CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit != CU_LIMIT_STACK_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    call_lock();
    *value = context->stack;
    call_unlock();
    return CUDA_SUCCESS;
}

/* More room for stacks is made when the device has nothing to do, as by a driver. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (limit != CU_LIMIT_STACK_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    call_lock();
    if (value > context->stack)
        queue_drain_context(context);
    context->stack = value;
    call_unlock();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    if (!context_valid(peer) || peer == context)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (!device_reaches(context->device, peer->device))
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    else if (context->reaches[peer->device])
        result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    else
        context->reaches[peer->device] = true;
    call_unlock();
    return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    call_lock();
    if (!context_valid(peer))
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (!context->reaches[peer->device])
        result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    else
        context->reaches[peer->device] = false;
    call_unlock();
    return result;
}
