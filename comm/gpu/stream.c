/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - a stream of calls over a CUDA stream. */
#include "comm/engine/stream.h"
#include "comm/gpu/arena.h"

#include "rondo/cuda.h"

#include "base/cancel.h"
#include "base/fail.h"

#include <stdlib.h>

/* A device on which calls were queued by a handle. */
struct home {
    struct home *next;
    struct cuda_device device;
};

struct cuda_stream {
    rondo_stream base;
    const struct cuda_driver *driver;
    CUstream stream;
    struct gpu_errors *errors;
    struct home *homes; /* under the lock of the errors */
};

/* ---- Contexts -------------------------------------------------------------------------------- */

/*
 * Calls go to the stream that the handle means on the device of their communicator. It may mean
 * another one where somebody asks how far they are, or none, without a context; so it is noted
 * where they went.
 */
static rondo_result note_home(struct cuda_stream *stream, const struct gpu *gpu)
{
    struct home *home;
    rondo_result result = RONDO_OK;

    pthread_mutex_lock(&stream->errors->lock);
    for (home = stream->homes; home; home = home->next)
        if (home->device.number == gpu->device.number)
            break;
    if (!home) {
        home = calloc(1, sizeof(*home));
        result = home ? cuda_device_open(gpu->device.number, &home->device)
                      : rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a stream.");
        if (result) {
            free(home);
        } else {
            home->next = stream->homes;
            stream->homes = home;
        }
    }
    pthread_mutex_unlock(&stream->errors->lock);
    return result;
}

static struct home *homes_of(struct cuda_stream *stream)
{
    struct home *homes;

    pthread_mutex_lock(&stream->errors->lock);
    homes = stream->homes;
    pthread_mutex_unlock(&stream->errors->lock);
    return homes;
}

/* A question about the stream wherever the handle means one with calls; the first answer but "yes".
 * There are no calls, and without a context nothing else, where it means none. */
static CUresult ask_everywhere(struct cuda_stream *stream, CUresult (*ask)(CUstream))
{
    const struct cuda_driver *driver = stream->driver;
    bool everywhere = gpu_is_everywhere(stream->stream);
    int current = cuda_current_number();
    CUresult code = current >= 0 || !everywhere ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    CUcontext context;

    if (current >= 0)
        code = ask(stream->stream);
    if (current >= 0 && (code || !everywhere))
        return code;
    for (const struct home *home = homes_of(stream); home; home = home->next) {
        if (home->device.number == current)
            continue;
        code = driver->cuCtxPushCurrent(home->device.context);
        if (code)
            return code;
        code = ask(stream->stream);
        driver->cuCtxPopCurrent(&context);
        if (code || !everywhere)
            return code;
    }
    /* Streams that can be told apart are asked for as the driver likes. */
    return code == CUDA_ERROR_INVALID_CONTEXT ? ask(stream->stream) : code;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* By plans on the device, on `to`, after what is on the stream so far. */
static rondo_result queue_plans(const struct cuda_stream *stream, const struct batch *batch,
                                CUstream to)
{
    CUstream from = stream->stream;
    struct gpu *gpu = batch->comm->gpu;
    const struct cuda_driver *cuda = gpu->device.driver;
    rondo_result result = cuda_enter(&gpu->device);

    if (result)
        return result;
    if (to != from) {
        result = cuda_result(cuda->cuEventRecord(gpu->plans->forked, from), "cuEventRecord");
        if (!result)
            result = cuda_result(cuda->cuStreamWaitEvent(to, gpu->plans->forked, 0),
                                 "cuStreamWaitEvent");
    }
    if (!result)
        result = gpu_plans_queue(gpu->plans, batch, to, stream->errors);
    cuda_leave(&gpu->device);
    return result;
}

/* `stream` goes on after the plans of the batch. */
static rondo_result join(const struct batch *batch, CUstream stream)
{
    struct gpu *gpu = batch->comm->gpu;
    const struct cuda_driver *cuda = gpu->device.driver;
    rondo_result result = cuda_enter(&gpu->device);

    if (result)
        return result;
    result =
        cuda_result(cuda->cuEventRecord(gpu->plans->forked, gpu->plans->side), "cuEventRecord");
    if (!result)
        result = cuda_result(cuda->cuStreamWaitEvent(stream, gpu->plans->forked, 0),
                             "cuStreamWaitEvent");
    cuda_leave(&gpu->device);
    return result;
}

/*
 * Several communicators on one stream: they may be ranks of this process that wait for each other,
 * or be in another order elsewhere. So each runs beside the stream, which waits for all.
 */
static rondo_result add_many(struct cuda_stream *stream, const struct batch *batches, int count)
{
    struct batch *staged = calloc((size_t)count, sizeof(*staged));
    rondo_result result = RONDO_OK;
    int others = 0;

    if (!staged)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group on a CUDA stream.");
    for (int i = 0; i < count && !result; i++) {
        struct gpu *gpu = batches[i].comm->gpu;

        if (gpu_plans_take(gpu, &batches[i]))
            result = queue_plans(stream, &batches[i], gpu->plans->side);
        else
            staged[others++] = batches[i];
    }
    if (!result && others)
        result = gpu_queue(stream->stream, staged, others, stream->errors);
    for (int i = 0; i < count && !result; i++)
        if (gpu_plans_take(batches[i].comm->gpu, &batches[i]))
            result = join(&batches[i], stream->stream);
    free(staged);
    return result;
}

static rondo_result add_batches(rondo_stream *base, const struct batch *batches, int count)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    for (int i = 0; i < count; i++) {
        struct gpu *gpu;
        rondo_result result = gpu_find(&batches[i], stream->stream, &gpu);

        if (!result)
            result = note_home(stream, gpu);
        if (result)
            return result;
    }
    if (count > 1)
        return add_many(stream, batches, count);
    if (gpu_plans_take(batches[0].comm->gpu, &batches[0]))
        return queue_plans(stream, &batches[0], stream->stream);
    return gpu_queue(stream->stream, batches, count, stream->errors);
}

/* Hand out the first error and forget it, or only show it. */
static rondo_result look_at_error(struct gpu_errors *errors, bool forget)
{
    rondo_result result;

    pthread_mutex_lock(&errors->lock);
    result = errors->result ? rondo_fail(errors->result, "%s", errors->sentence) : RONDO_OK;
    if (forget)
        errors->result = RONDO_OK;
    pthread_mutex_unlock(&errors->lock);
    return result;
}

static rondo_result call(rondo_stream *base, rondo_stream_function function, void *context)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    return cuda_result(stream->driver->cuLaunchHostFunc(stream->stream, function, context),
                       "cuLaunchHostFunc");
}

static rondo_result synchronize(rondo_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    rondo_result result = cuda_result(ask_everywhere(stream, stream->driver->cuStreamSynchronize),
                                      "cuStreamSynchronize");

    if (result)
        return result;
    gpu_judge_stream(stream->errors);
    return look_at_error(stream->errors, true);
}

static rondo_result query(rondo_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    rondo_result result = look_at_error(stream->errors, false);
    CUresult code;

    if (result)
        return result;
    code = ask_everywhere(stream, stream->driver->cuStreamQuery);
    if (code)
        return code == CUDA_ERROR_NOT_READY ? RONDO_IN_PROGRESS
                                            : cuda_result(code, "cuStreamQuery");
    gpu_judge_stream(stream->errors);
    return look_at_error(stream->errors, false);
}

static void close_stream(rondo_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    while (stream->homes) {
        struct home *home = stream->homes;

        stream->homes = home->next;
        cuda_device_close(&home->device);
        free(home);
    }
    gpu_errors_drop(stream->errors);
    free(stream);
}

static const struct stream_ops cuda_stream_ops = {.add_batches = add_batches,
                                                  .call = call,
                                                  .synchronize = synchronize,
                                                  .query = query,
                                                  .close = close_stream};

rondo_result rondo_stream_open_cuda(void *cuda_stream, rondo_stream **ret_stream)
{
    CANCEL_LATER();
    struct cuda_stream *stream;
    const struct cuda_driver *driver;
    rondo_result result;

    if (!ret_stream)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_stream_open_cuda: no place for the stream.");
    result = cuda_load(&driver);
    if (result)
        return result;
    stream = calloc(1, sizeof(*stream));
    if (stream)
        stream->errors = calloc(1, sizeof(*stream->errors));
    if (!stream || !stream->errors) {
        free(stream);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a stream.");
    }
    pthread_mutex_init(&stream->errors->lock, NULL);
    stream->errors->users = 1;
    stream->base.ops = &cuda_stream_ops;
    stream->base.home = fork_home();
    stream->driver = driver;
    stream->stream = cuda_stream;
    *ret_stream = &stream->base;
    return RONDO_OK;
}
