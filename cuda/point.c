/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/point.h"

#include "base/fail.h"

#include <stdlib.h>

struct cuda_point {
    const struct cuda_driver *driver;
    CUcontext context;
    CUevent event;
};

/* The context of the stream that the handle means to this thread. */
static CUresult context_of(const struct cuda_driver *driver, CUstream stream, CUcontext spare,
                           CUcontext *ret_context)
{
    bool borrows = cuda_current_number() < 0 && spare;
    CUcontext popped;
    CUresult code = borrows ? driver->cuCtxPushCurrent(spare) : CUDA_SUCCESS;

    if (code)
        return code;
    code = cuda_is_everywhere(stream) ? driver->cuCtxGetCurrent(ret_context)
                                      : driver->cuStreamGetCtx(stream, ret_context);
    if (borrows)
        driver->cuCtxPopCurrent(&popped);
    return code;
}

/* Make it current. */
static rondo_result enter_context(const struct cuda_driver *driver, CUstream stream,
                                  CUcontext spare, CUcontext *ret_context)
{
    rondo_result result =
        cuda_result(context_of(driver, stream, spare, ret_context), "cuStreamGetCtx");

    return result ? result
                  : cuda_result(driver->cuCtxPushCurrent(*ret_context), "cuCtxPushCurrent");
}

rondo_result cuda_point_make(const struct cuda_driver *driver, CUstream stream, CUcontext spare,
                             struct cuda_point **ret_point)
{
    struct cuda_point *point = calloc(1, sizeof(*point));
    CUcontext popped;
    rondo_result result;

    if (!point)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a point of a stream.");
    point->driver = driver;
    result = enter_context(driver, stream, spare, &point->context);
    if (result) {
        free(point);
        return result;
    }
    result =
        cuda_result(driver->cuEventCreate(&point->event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    if (!result)
        result = cuda_result(driver->cuEventRecord(point->event, stream), "cuEventRecord");
    driver->cuCtxPopCurrent(&popped);
    if (result)
        cuda_point_drop(point);
    else
        *ret_point = point;
    return result;
}

rondo_result cuda_point_await(const struct cuda_point *point, CUstream stream, CUcontext spare)
{
    const struct cuda_driver *driver = point->driver;
    CUcontext context;
    rondo_result result = enter_context(driver, stream, spare, &context);

    if (result)
        return result;
    result = cuda_result(driver->cuStreamWaitEvent(stream, point->event, 0), "cuStreamWaitEvent");
    driver->cuCtxPopCurrent(&context);
    return result;
}

void cuda_point_drop(struct cuda_point *point)
{
    CUcontext context;

    if (point->event && !point->driver->cuCtxPushCurrent(point->context)) {
        point->driver->cuEventDestroy(point->event);
        point->driver->cuCtxPopCurrent(&context);
    }
    free(point);
}
