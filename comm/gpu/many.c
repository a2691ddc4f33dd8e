/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many.c - calls of several communicators on one CUDA stream. They may be ranks of this process
 * that wait for each other, or be in another order elsewhere, so each runs beside the stream:
 *
 *     the stream    | ... ---+---------------------------+--- ...
 *     side of A     |        +-> calls of A ---------->--+
 *     side of B     |        +-> calls of B ---------->--+
 *
 * Where ranks share a device, each side's calls are queued by a thread: gpu/gate.c has it wait
 * until the others have queued theirs, which with few hardware channels must come first.
 */
#include "comm/engine/threads.h"
#include "comm/gpu/arena.h"

#include "base/fail.h"

#include <stdlib.h>

rondo_result gpu_queue_plans(CUstream stream, const struct batch *batch, struct gpu_errors *errors)
{
    struct gpu *gpu = comm_gpu(batch->comm);
    rondo_result result = cuda_enter(&gpu->device);

    if (result)
        return result;
    result = gpu_plans_queue(gpu->plans, batch, stream, errors);
    cuda_leave(&gpu->device);
    return result;
}

/* One of these streams of the communicator's device goes on after what is on the other so far. */
static rondo_result follow(struct gpu *gpu, CUstream stream, CUstream earlier)
{
    const struct cuda_driver *cuda = gpu->device.driver;
    rondo_result result = cuda_enter(&gpu->device);

    if (result)
        return result;
    result = cuda_result(cuda->cuEventRecord(gpu->plans->forked, earlier), "cuEventRecord");
    if (!result)
        result = cuda_result(cuda->cuStreamWaitEvent(stream, gpu->plans->forked, 0),
                             "cuStreamWaitEvent");
    cuda_leave(&gpu->device);
    return result;
}

/* The work of one communicator beside a stream. */
struct beside {
    const struct batch *batch;
    struct gpu_errors *errors;
};

static rondo_result queue_beside(void *argument)
{
    const struct beside *beside = argument;

    return gpu_queue_plans(comm_gpu(beside->batch->comm)->plans->side, beside->batch,
                           beside->errors);
}

/* Ranks that share a device queue what others wait for before they wait: each has a thread. */
static rondo_result queue_all_beside(struct beside *list, int count)
{
    void **arguments = calloc((size_t)count + 1, sizeof(*arguments));
    rondo_result result = RONDO_OK;
    bool gated = false;

    if (!arguments)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group on a CUDA stream.");
    for (int i = 0; i < count; i++) {
        arguments[i] = &list[i];
        gated |= comm_gpu(list[i].batch->comm)->gate != NULL;
    }
    if (gated && count > 1)
        result = threads_run(queue_beside, arguments, count);
    for (int i = 0; i < count && !(gated && count > 1) && !result; i++)
        result = queue_beside(&list[i]);
    free(arguments);
    return result;
}

rondo_result gpu_queue_many(CUstream stream, const struct batch *batches, int count,
                            struct gpu_errors *errors)
{
    struct batch *staged = calloc((size_t)count, sizeof(*staged));
    struct beside *plans = calloc((size_t)count, sizeof(*plans));
    int others = 0, used = 0;
    rondo_result result = RONDO_OK;

    if (!staged || !plans)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group on a CUDA stream.");
    for (int i = 0; i < count && !result; i++) {
        struct gpu *gpu = comm_gpu(batches[i].comm);

        if (gpu_plans_take(gpu, &batches[i])) {
            plans[used++] = (struct beside){&batches[i], errors};
            result = follow(gpu, gpu->plans->side, stream);
        } else {
            staged[others++] = batches[i];
        }
    }
    gpu_gate_wait_for_none(true);
    if (!result)
        result = queue_all_beside(plans, used);
    if (!result && others)
        result = gpu_queue(stream, staged, others, errors);
    gpu_gate_wait_for_none(false);
    for (int i = 0; i < used && !result; i++) {
        struct gpu *gpu = comm_gpu(plans[i].batch->comm);

        result = follow(gpu, stream, gpu->plans->side);
    }
    free(plans);
    free(staged);
    return result;
}
