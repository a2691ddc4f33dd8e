/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.c - what the data-parallel layer asks of the device: copies in the order of passes, and
 * marks, which are events of CUDA.
 */
#include "train/cuda/inside.h"

#include <stdlib.h>

static CUevent *events;
static int event_count;

static rondo_result copy(void *context, void *to, const void *from, size_t bytes)
{
    if (!from)
        gpu_arithmetic.clear(to, bytes);
    else if (!gpu.result)
        gpu_note(driver.cuMemcpyDtoDAsync(gpu_address(to), gpu_address(from), bytes, gpu.passes),
                 "cuMemcpyDtoDAsync");
    return gpu_outcome();
}

static bool have_event(int mark)
{
    CUevent *more;

    if (mark < event_count)
        return true;
    more = realloc(events, ((size_t)mark + 1) * sizeof(*events));
    if (!more)
        return gpu_note(CUDA_ERROR_OUT_OF_MEMORY, "a list of events");
    events = more;
    while (event_count <= mark &&
           gpu_note(driver.cuEventCreate(&events[event_count], CU_EVENT_DEFAULT), "cuEventCreate"))
        event_count++;
    return event_count > mark;
}

static rondo_result set_mark(void *context, int mark, int of_exchange)
{
    if (!gpu.result && have_event(mark))
        gpu_note(driver.cuEventRecord(events[mark], of_exchange ? gpu.exchanges : gpu.passes),
                 "cuEventRecord");
    return gpu_outcome();
}

static rondo_result follow(void *context, int mark)
{
    if (!gpu.result)
        gpu_note(driver.cuStreamWaitEvent(gpu.exchanges, events[mark], 0), "cuStreamWaitEvent");
    return gpu_outcome();
}

static rondo_result between(void *context, int from, int to, double *ret_seconds)
{
    float milliseconds = 0;

    if (!gpu.result && gpu_note(driver.cuEventElapsedTime(&milliseconds, events[from], events[to]),
                                "cuEventElapsedTime"))
        *ret_seconds = (double)milliseconds / 1e3;
    return gpu_outcome();
}

void gpu_exchange(rondo_ddp_device *ret_device)
{
    *ret_device = (rondo_ddp_device){.stream = gpu.exchanges,
                                     .copy = copy,
                                     .mark = set_mark,
                                     .follow = follow,
                                     .between = between};
}

void gpu_marks_close(void)
{
    for (int i = 0; i < event_count; i++)
        driver.cuEventDestroy(events[i]);
    free(events);
    events = NULL;
    event_count = 0;
}
