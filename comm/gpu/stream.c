/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - a stream of calls over a CUDA stream. */
#include "comm/engine/stream.h"
#include "comm/gpu/arena.h"

#include "base/lock.h"
#include "cuda/point.h"
#include "rondo/cuda.h"

#include "base/cancel.h"
#include "base/fail.h"

#include <stdlib.h>

/* The end of the last call on a thread's own stream, by which other threads find it. */
struct ending {
    struct ending *next;
    unsigned long long stream; /* number */
    CUevent event;
};

/* A device on which calls were queued by a handle. */
struct home {
    struct home *next;
    struct cuda_device device;
    struct ending *endings; /* where the handle means another stream in each thread */
};

struct cuda_stream {
    rondo_stream base;
    const struct cuda_driver *driver;
    CUstream stream;
    struct gpu_errors *errors;
    struct home *homes; /* under the lock of the errors */
    struct lock lock;   /* of their endings; held in calls of the driver, which may take long */
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

    lock_take(&stream->errors->lock);
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
    lock_give(&stream->errors->lock);
    return result;
}

static struct home *homes_of(struct cuda_stream *stream)
{
    struct home *homes;

    lock_take(&stream->errors->lock);
    homes = stream->homes;
    lock_give(&stream->errors->lock);
    return homes;
}

/* One for that stream: its own, or one that nobody waits for any more. */
static struct ending *find_ending(const struct cuda_driver *driver, struct home *home,
                                  unsigned long long stream)
{
    struct ending *ending = home->endings, *spare = NULL;

    for (; ending && ending->stream != stream; ending = ending->next)
        if (!spare && !driver->cuEventQuery(ending->event))
            spare = ending;
    if (ending || spare)
        return ending ? ending : spare;
    ending = calloc(1, sizeof(*ending));
    if (!ending || driver->cuEventCreate(&ending->event, CU_EVENT_DISABLE_TIMING)) {
        free(ending);
        return NULL;
    }
    ending->next = home->endings;
    home->endings = ending;
    return ending;
}

/* With the lock, and the home's context. What goes into a graph has no end here. */
static rondo_result record_ending(const struct cuda_stream *stream, struct home *home)
{
    const struct cuda_driver *driver = stream->driver;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long number = 0;
    struct ending *ending;

    if (driver->cuStreamIsCapturing(stream->stream, &status) ||
        status != CU_STREAM_CAPTURE_STATUS_NONE)
        return RONDO_OK;
    if (driver->cuStreamGetId(stream->stream, &number))
        return rondo_fail(RONDO_ERROR_SYSTEM, "A thread's default stream has no number.");
    ending = find_ending(driver, home, number);
    if (!ending)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a stream.");
    ending->stream = number;
    return cuda_result(driver->cuEventRecord(ending->event, stream->stream), "cuEventRecord");
}

/* A call was queued on this thread's own stream, if the handle means that. */
static rondo_result note_ending(struct cuda_stream *stream, const struct gpu *gpu)
{
    rondo_result result = RONDO_OK;

    if (stream->stream != CU_STREAM_PER_THREAD)
        return RONDO_OK;
    result = cuda_enter(&gpu->device);
    if (result)
        return result;
    lock_take(&stream->lock);
    for (struct home *home = homes_of(stream); home && !result; home = home->next)
        if (home->device.number == gpu->device.number)
            result = record_ending(stream, home);
    lock_give(&stream->lock);
    cuda_leave(&gpu->device);
    return result;
}

static struct ending *endings_of(struct cuda_stream *stream, const struct home *home)
{
    struct ending *endings;

    lock_take(&stream->lock);
    endings = home->endings;
    lock_give(&stream->lock);
    return endings;
}

/* Ask about the last call of every thread by this handle; the first answer but "yes". */
static CUresult ask_endings(struct cuda_stream *stream, CUresult (*ask)(CUevent))
{
    const struct cuda_driver *driver = stream->driver;
    CUresult code = CUDA_SUCCESS;
    CUcontext context;

    for (const struct home *home = homes_of(stream); home && !code; home = home->next) {
        const struct ending *ending = endings_of(stream, home);

        if (!ending)
            continue;
        code = driver->cuCtxPushCurrent(home->device.context);
        if (code)
            return code;
        for (; ending && !code; ending = ending->next)
            code = ask(ending->event);
        driver->cuCtxPopCurrent(&context);
    }
    return code;
}

/* A question about the stream wherever the handle means one with calls; the first answer but "yes".
 * There are no calls, and without a context nothing else, where it means none. */
static CUresult ask_everywhere(struct cuda_stream *stream, CUresult (*ask)(CUstream))
{
    const struct cuda_driver *driver = stream->driver;
    bool everywhere = cuda_is_everywhere(stream->stream);
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

static rondo_result add(struct cuda_stream *stream, const struct batch *batches, int count)
{
    if (count > 1)
        return gpu_queue_many(stream->stream, batches, count, stream->errors);
    if (gpu_plans_take(comm_gpu(batches[0].comm), &batches[0]))
        return gpu_queue_plans(stream->stream, &batches[0], stream->errors);
    return gpu_queue(stream->stream, batches, count, stream->errors);
}

static rondo_result add_batches(rondo_stream *base, const struct batch *batches, int count)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    rondo_result result = RONDO_OK;
    struct gpu *gpu;

    for (int i = 0; i < count && !result; i++) {
        result = gpu_find(&batches[i], stream->stream, &gpu);
        if (!result)
            result = note_home(stream, gpu);
    }
    if (!result)
        result = add(stream, batches, count);
    for (int i = 0; i < count && !result; i++)
        result = note_ending(stream, comm_gpu(batches[i].comm));
    return result;
}

/* Hand out the first error and forget it, or only show it. */
static rondo_result look_at_error(struct gpu_errors *errors, bool forget)
{
    rondo_result result;

    lock_take(&errors->lock);
    result = errors->result ? rondo_fail(errors->result, "%s", errors->sentence) : RONDO_OK;
    if (forget)
        errors->result = RONDO_OK;
    lock_give(&errors->lock);
    return result;
}

static rondo_result call(rondo_stream *base, rondo_stream_function function, void *context)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    return cuda_result(stream->driver->cuLaunchHostFunc(stream->stream, function, context),
                       "cuLaunchHostFunc");
}

/* ---- Points ---------------------------------------------------------------------------------- */

/* A context by which a thread that has none can ask about the stream; NULL: it had no calls. */
static CUcontext spare_context(struct cuda_stream *stream)
{
    const struct home *home = homes_of(stream);

    return home ? home->device.context : NULL;
}

static rondo_result make_point(rondo_stream *base, void **ret_point)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    struct cuda_point *point = NULL;
    rondo_result result =
        cuda_point_make(stream->driver, stream->stream, spare_context(stream), &point);

    *ret_point = point;
    return result;
}

static rondo_result await_point(rondo_stream *base, void *point)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    return cuda_point_await(point, stream->stream, spare_context(stream));
}

static void drop_point(void *point)
{
    cuda_point_drop(point);
}

static bool captures(const rondo_stream *base)
{
    const struct cuda_stream *stream = (const struct cuda_stream *)base;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return !stream->driver->cuStreamIsCapturing(stream->stream, &status) &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static rondo_result synchronize(rondo_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    rondo_result result = cuda_result(ask_everywhere(stream, stream->driver->cuStreamSynchronize),
                                      "cuStreamSynchronize");

    if (!result)
        result = cuda_result(ask_endings(stream, stream->driver->cuEventSynchronize),
                             "cuEventSynchronize");
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
    if (!code)
        code = ask_endings(stream, stream->driver->cuEventQuery);
    if (code)
        return code == CUDA_ERROR_NOT_READY ? RONDO_IN_PROGRESS
                                            : cuda_result(code, "cuStreamQuery");
    gpu_judge_stream(stream->errors);
    return look_at_error(stream->errors, false);
}

static void close_endings(const struct cuda_driver *driver, struct home *home)
{
    CUcontext context;

    if (!home->endings || driver->cuCtxPushCurrent(home->device.context))
        return;
    while (home->endings) {
        struct ending *ending = home->endings;

        home->endings = ending->next;
        driver->cuEventDestroy(ending->event);
        free(ending);
    }
    driver->cuCtxPopCurrent(&context);
}

static void close_stream(rondo_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;

    while (stream->homes) {
        struct home *home = stream->homes;

        stream->homes = home->next;
        close_endings(stream->driver, home);
        cuda_device_close(&home->device);
        free(home);
    }
    gpu_errors_drop(stream->errors);
    lock_done(&stream->lock);
    free(stream);
}

/* A thread's own stream is another one on other threads. */
static bool waits_for_others(const rondo_stream *base, const rondo_comm *comm)
{
    const struct cuda_stream *stream = (const struct cuda_stream *)base;

    return stream->stream != CU_STREAM_PER_THREAD && comm_gpu(comm) && comm_gpu(comm)->gate;
}

static const struct stream_ops cuda_stream_ops = {.add_batches = add_batches,
                                                  .waits_for_others = waits_for_others,
                                                  .call = call,
                                                  .synchronize = synchronize,
                                                  .query = query,
                                                  .captures = captures,
                                                  .make_point = make_point,
                                                  .await_point = await_point,
                                                  .drop_point = drop_point,
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
    lock_init(&stream->errors->lock, LOCK_GPU_ERRORS);
    lock_init(&stream->lock, LOCK_GPU_STREAM);
    stream->errors->users = 1;
    stream->base.ops = &cuda_stream_ops;
    stream->base.home = fork_home();
    stream->driver = driver;
    stream->stream = cuda_stream;
    *ret_stream = &stream->base;
    return RONDO_OK;
}
