/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequence.c - see gpu/sequence.h. What comes first is decided on the host, where calls are
 * made and graphs are launched: were it left to which work gets first to the device (a ticket
 * there), ranks could decide differently, and each would wait for the other. The driver knows when
 * a graph is launched, Rondo does not, so the order is told to it as events:
 *
 *     call in a stream     wait: last | call | record: last
 *     in a graph           wait: last, external | call 1 | record: last, external
 *                            on any branch behind it    | call 2 | record: last, external | ...
 *
 * An external record or wait is a node that does at each launch what the stream would do there: the
 * launch waits for the call before it, and the next call or launch waits for the launch. Within one
 * capture each call waits for the one before by an event of the capture; branches that the program
 * keeps apart so run one after another, as far as they have calls.
 *
 * Cost: a call in the stream of the last one asks for the stream's number, and records. One in
 * another stream, or with graphs about, has a wait more. A graph has a node for each call, and one.
 */
#include "comm/gpu/sequence.h"

#include "base/fail.h"

#include <stdatomic.h>
#include <string.h>

static rondo_result make_event(const struct cuda_driver *cuda, CUevent *ret_event)
{
    return cuda_result(cuda->cuEventCreate(ret_event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

rondo_result gpu_sequence_open(struct gpu_sequence *sequence, const struct cuda_driver *cuda)
{
    memset(sequence, 0, sizeof(*sequence));
    sequence->cuda = cuda;
    lock_init(&sequence->lock, LOCK_GPU_SEQUENCE);
    return make_event(cuda, &sequence->last);
}

void gpu_sequence_close(struct gpu_sequence *sequence)
{
    if (!sequence->cuda)
        return;
    if (sequence->last)
        sequence->cuda->cuEventDestroy(sequence->last);
    for (int i = 0; i < GPU_CHAINS; i++)
        if (sequence->chains[i].end)
            sequence->cuda->cuEventDestroy(sequence->chains[i].end);
    lock_done(&sequence->lock);
}

bool gpu_sequence_is_launched(const struct gpu_sequence *sequence)
{
    const struct cuda_driver *cuda = sequence->cuda;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool launched;

    if (!atomic_load_explicit(&sequence->graphs, memory_order_acquire))
        return false;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    launched = cuda->cuEventQuery(sequence->last) == CUDA_ERROR_NOT_READY;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return launched;
}

/* With the lock held: the chain of that capture, or one that it may have. */
static struct gpu_chain *find_chain(struct gpu_sequence *sequence, cuuint64_t capture)
{
    struct gpu_chain *chain = sequence->chains;

    for (int i = 0; i < GPU_CHAINS; i++) {
        if (sequence->chains[i].capture == capture)
            return &sequence->chains[i];
        if (sequence->chains[i].used < chain->used)
            chain = &sequence->chains[i];
    }
    chain->capture = 0;
    return chain;
}

static rondo_result wait_for(const struct gpu_sequence *sequence, CUstream stream, CUevent event,
                             unsigned flags)
{
    return cuda_result(sequence->cuda->cuStreamWaitEvent(stream, event, flags),
                       "cuStreamWaitEvent");
}

/* With the lock held. */
static rondo_result enter_capture(struct gpu_sequence *sequence, const struct gpu_place *place)
{
    struct gpu_chain *chain = find_chain(sequence, place->capture);

    atomic_store_explicit(&sequence->graphs, true, memory_order_release);
    if (chain->capture)
        return wait_for(sequence, place->handle, chain->end, CU_EVENT_WAIT_DEFAULT);
    return wait_for(sequence, place->handle, sequence->last, CU_EVENT_WAIT_EXTERNAL);
}

/* With the lock held. Graphs may have been launched since, in other streams. */
static rondo_result enter_stream(const struct gpu_sequence *sequence, const struct gpu_place *place)
{
    bool graphs = atomic_load_explicit(&sequence->graphs, memory_order_relaxed);

    if (!graphs && (!sequence->recorded || sequence->stream == place->stream))
        return RONDO_OK;
    return wait_for(sequence, place->handle, sequence->last, CU_EVENT_WAIT_DEFAULT);
}

static rondo_result find_place(const struct gpu_sequence *sequence, CUstream stream,
                               struct gpu_place *ret_place)
{
    const struct cuda_driver *cuda = sequence->cuda;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    rondo_result result =
        cuda_result(cuda->cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");

    *ret_place = (struct gpu_place){.handle = stream};
    if (result)
        return result;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE)
        return cuda_result(cuda->cuStreamGetId(stream, &ret_place->stream), "cuStreamGetId");
    return cuda_result(
        cuda->cuStreamGetCaptureInfo_v2(stream, &status, &ret_place->capture, NULL, NULL, NULL),
        "cuStreamGetCaptureInfo");
}

rondo_result gpu_sequence_enter(struct gpu_sequence *sequence, CUstream stream,
                                struct gpu_place *ret_place)
{
    rondo_result result = find_place(sequence, stream, ret_place);

    if (result)
        return result;
    lock_take(&sequence->lock);
    result =
        ret_place->capture ? enter_capture(sequence, ret_place) : enter_stream(sequence, ret_place);
    lock_give(&sequence->lock);
    return result;
}

/* With the lock held. */
static rondo_result leave_capture(struct gpu_sequence *sequence, const struct gpu_place *place)
{
    const struct cuda_driver *cuda = sequence->cuda;
    struct gpu_chain *chain = find_chain(sequence, place->capture);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    rondo_result result = cuda_result(
        cuda->cuEventRecordWithFlags(sequence->last, place->handle, CU_EVENT_RECORD_EXTERNAL),
        "cuEventRecordWithFlags");

    if (!result && !chain->end) {
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
        result = make_event(cuda, &chain->end);
        cuda->cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (!result)
        result = cuda_result(cuda->cuEventRecord(chain->end, place->handle), "cuEventRecord");
    chain->capture = result ? 0 : place->capture;
    chain->used = ++sequence->uses;
    return result;
}

rondo_result gpu_sequence_leave(struct gpu_sequence *sequence, const struct gpu_place *place)
{
    rondo_result result;

    lock_take(&sequence->lock);
    if (place->capture) {
        result = leave_capture(sequence, place);
    } else {
        result = cuda_result(sequence->cuda->cuEventRecord(sequence->last, place->handle),
                             "cuEventRecord");
        sequence->stream = place->stream;
        sequence->recorded = !result;
    }
    lock_give(&sequence->lock);
    return result;
}
