/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cudart_streams.c - the runtime's streams, events and graphs: those of the driver by other names.
 */
#include "standin/runtime/cudart.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamDestroy(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamGetDevice(stream, device));
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamGetId(stream, id));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuStreamEndCapture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    cudaError_t error = runtime_enter();
    return error ? error
                 : runtime_result(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuLaunchHostFunc(stream, function, argument));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventCreate(event, CU_EVENT_DEFAULT));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventCreate(event, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventRecord(event, stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventSynchronize(event));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventDestroy(event));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t second)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuEventElapsedTime(milliseconds, first, second));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphInstantiate(exec, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphInstantiate(exec, graph, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphLaunch(exec, stream));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphDestroy(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphExecDestroy(exec));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    cudaError_t error = runtime_enter();
    return error ? error : runtime_result(cuGraphGetNodes(graph, nodes, count));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    const CUgraphEdgeData *none = NULL;
    cuuint64_t number = 0;
    cudaError_t error = runtime_enter();
    if (error)
        return error;
    CUresult result = cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)status, &number,
                                             graph, nodes, &none, count);
    if (!result && id)
        *id = number;
    if (!result && edges)
        *edges = NULL; /* edges have no data here */
    return runtime_result(result);
}
