/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - the functions of the driver about streams.
 */
#include "standin/driver/stream.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/context.h"
#include "standin/driver/queue.h"

CUresult stream_enter(const char *function, CUstream handle, CUstream *ret_stream)
{
    CUcontext context = NULL;
    CUresult result = context_enter(function, &context);
    if (result)
        return result;
    call_lock();
    *ret_stream = queue_find(context, handle);
    if (*ret_stream)
        return CUDA_SUCCESS;
    call_unlock();
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_put(CUstream stream, struct op *op)
{
    CUresult result = op ? capture_allows(stream) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!result && capture_active(stream))
        result = capture_put(stream, op);
    else if (!result && !queue_put(stream, op))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

CUresult stream_submit(CUstream stream, struct op *op)
{
    CUresult result = stream_put(stream, op);
    call_unlock();
    if (result)
        op_release(op);
    return result;
}

/* Puts it into the queue. Under the lock, which it keeps. */
static CUresult put_now(CUstream stream, struct op *op, bool unsafe)
{
    CUresult result = op ? capture_allows(stream) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!result && unsafe)
        result = capture_forbid();
    if (!result)
        result = capture_forbid_stream(stream);
    if (!result && !queue_put(stream, op))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

CUresult stream_submit_unsafe(CUstream stream, struct op *op)
{
    CUresult result = put_now(stream, op, true);
    call_unlock();
    if (result)
        op_release(op);
    return result;
}

CUresult stream_submit_and_wait(CUstream stream, struct op *op, bool unsafe)
{
    CUresult result = put_now(stream, op, unsafe);
    if (!result) {
        struct point point = queue_point(stream);
        queue_wait(point);
        queue_forget(point);
    }
    call_unlock();
    if (result)
        op_release(op);
    return result;
}

static CUresult create(const char *function, CUstream *ret_stream, unsigned flags, int priority)
{
    CUcontext context = NULL;
    CUresult result = context_enter(function, &context);
    if (result)
        return result;
    if (!ret_stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    call_lock();
    while (context->kernels && call_setting("STREAMS_WAIT", 0))
        call_wait(&context->quiet);
    CUstream stream = queue_open(context, flags, priority);
    call_unlock();
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_stream = stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return create(__func__, stream, flags, priority);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return create(__func__, stream, flags, 0);
}

static bool is_special(CUstream handle)
{
    return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

void stream_close(CUstream stream)
{
    CUgraph graph = capture_leave(stream);
    if (graph)
        graph_forget(graph);
    queue_close(stream);
    if (!graph)
        return;
    call_unlock();
    graph_close(graph);
    call_lock();
}

CUresult cuStreamDestroy(CUstream handle)
{
    CUstream stream = NULL;
    if (is_special(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    stream_close(stream);
    call_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    result = capture_forbid_stream(stream);
    if (!result)
        result = capture_allows(stream);
    if (!result)
        queue_drain(stream);
    call_unlock();
    return result;
}

CUresult cuStreamQuery(CUstream handle)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    result = capture_forbid_stream(stream);
    if (!result)
        result = capture_allows(stream);
    if (!result && !queue_idle(stream))
        result = CUDA_ERROR_NOT_READY;
    call_unlock();
    return result;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (context)
        *context = stream->context;
    call_unlock();
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (device)
        *device = stream->context->device;
    call_unlock();
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (flags)
        *flags = stream->flags;
    call_unlock();
    return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (priority)
        *priority = stream->priority;
    call_unlock();
    return priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (id)
        *id = stream->id;
    call_unlock();
    return id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct host_function {
    struct op op;
    CUhostFn function;
    void *argument;
};

/* Under the lock: those that have begun and not ended, also by waiting for their turn. */
static unsigned host_functions;
static pthread_cond_t no_host_function = PTHREAD_COND_INITIALIZER;

/* Those of all streams run one after the other, as real drivers may do it: who waits in one for
 * another one waits for ever. */
static void run_host_function(struct op *op)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    const struct host_function *host = (struct host_function *)op;
    call_lock();
    host_functions++;
    call_unlock();
    pthread_mutex_lock(&turn);
    call_in_host_function(true);
    host->function(host->argument);
    call_in_host_function(false);
    pthread_mutex_unlock(&turn);
    call_lock();
    if (--host_functions == 0)
        pthread_cond_broadcast(&no_host_function);
    call_unlock();
}

void stream_await_host_functions(void)
{
    call_lock();
    while (host_functions)
        call_wait(&no_host_function);
    call_unlock();
}

static const struct op_kind host_function_kind = {CU_GRAPH_NODE_TYPE_HOST, run_host_function, NULL,
                                                  NULL, NULL};

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument)
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    struct host_function *host = op_new(sizeof *host, &host_function_kind);
    if (host) {
        host->function = function;
        host->argument = argument;
    }
    return stream_submit(stream, host ? &host->op : NULL);
}
