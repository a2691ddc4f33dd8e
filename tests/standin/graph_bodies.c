/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_bodies.c - bodies of tests: capture of streams, graphs and their replay.
 */
#include "tests/standin/bodies.h"

#include <pthread.h>

static const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
static const CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

static void launch_and_wait(struct check *check, CUgraphExec exec, CUstream stream)
{
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuStreamSynchronize(stream));
}

/* Ends the capture: the graph becomes executable and is destroyed. */
static CUgraphExec end_capture(struct check *check, CUstream stream, size_t nodes)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    size_t count = 0;
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphGetNodes(graph, NULL, &count));
    CHECK(count == nodes);
    CHECK_OK(cuGraphInstantiate(&exec, graph, 0));
    CHECK_OK(cuGraphDestroy(graph));
    return exec;
}

/* The event takes the one stream's work so far over to the other. */
static void follow(struct check *check, CUstream stream, CUevent event, CUstream after)
{
    CHECK_OK(cuEventRecord(event, after));
    CHECK_OK(cuStreamWaitEvent(stream, event, 0));
}

static CUevent make_event(struct check *check)
{
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

void body_captured_work_runs_at_each_launch_only(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_OK(cuMemcpyDtoDAsync(memory + 8, memory + 4, 4, stream));
    CHECK_OK(cuMemcpyDtoDAsync(memory + 4, memory, 4, stream));
    CUgraphExec exec = end_capture(check, stream, 2);
    CHECK_OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_OK(cuMemsetD32(memory, 1, 1));
    CHECK(check_read(check, memory + 4) == 0);
    launch_and_wait(check, exec, stream);
    CHECK_OK(cuMemsetD32(memory, 2, 1));
    launch_and_wait(check, exec, stream);
    CHECK(check_read(check, memory + 4) == 2 && check_read(check, memory + 8) == 1);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_GIVES(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}

/* One branch waits for a word that the other writes, and the other way round: they must overlap. */
void body_branches_of_a_graph_run_side_by_side(struct check *check)
{
    check_begin(check, 0);
    CUstream first = check_stream(check), second = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CUevent fork = make_event(check), join = make_event(check);
    CHECK_OK(cuStreamBeginCapture(first, global));
    CHECK_OK(cuMemsetD32Async(memory, 0, 4, first));
    follow(check, second, fork, first);
    CHECK_OK(cuStreamWriteValue32(first, memory, 1, 0));
    CHECK_OK(cuStreamWaitValue32(second, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_OK(cuStreamWriteValue32(second, memory + 4, 1, 0));
    CHECK_OK(cuStreamWaitValue32(first, memory + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
    follow(check, first, join, second);
    CHECK_OK(cuMemsetD32Async(memory + 8, 7, 1, first));
    CUgraphExec exec = end_capture(check, first, 6);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(cuMemsetD32(memory + 8, 0, 1));
        launch_and_wait(check, exec, i % 2 ? first : second);
        CHECK(check_read(check, memory + 8) == 7);
    }
    CHECK_OK(cuGraphExecDestroy(exec));
    check_end(check, 0);
}

void body_launches_of_one_graph_follow_each_other(struct check *check)
{
    check_begin(check, 0);
    CUstream first = check_stream(check), second = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    unsigned *gate = check_word(check);
    CHECK_OK(cuStreamBeginCapture(first, relaxed));
    CHECK_OK(cuStreamWaitValue32(first, check_address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(cuMemsetD32Async(memory, 1, 1, first));
    CUgraphExec exec = end_capture(check, first, 2);
    CHECK_OK(cuGraphLaunch(exec, first));
    CHECK_OK(cuGraphLaunch(exec, second));
    CHECK_OK(cuGraphExecDestroy(exec)); /* launches that are under way go on */
    CHECK_GIVES(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(cuStreamSynchronize(second));
    CHECK_OK(cuStreamQuery(first)); /* the first launch was done before */
    check_end(check, 0);
}

void body_graph_of_a_graph_runs_it_in_its_place(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuMemcpyDtoDAsync(memory + 4, memory, 4, stream));
    CUgraphExec inner = end_capture(check, stream, 1);
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuMemsetD32Async(memory, 3, 1, stream));
    CHECK_OK(cuGraphLaunch(inner, stream));
    CHECK_OK(cuMemsetD32Async(memory, 4, 1, stream));
    CUgraphExec outer = end_capture(check, stream, 3);
    launch_and_wait(check, outer, stream);
    CHECK(check_read(check, memory) == 4 && check_read(check, memory + 4) == 3);
    CHECK_OK(cuGraphExecDestroy(outer));
    CHECK_OK(cuGraphExecDestroy(inner));
    check_end(check, 0);
}

/* Begins a capture, in which something illegal follows. */
static CUstream begin_spoilt(struct check *check, CUstreamCaptureMode mode)
{
    CUstream stream = check_stream(check);
    CHECK_OK(cuStreamBeginCapture(stream, mode));
    return stream;
}

/* The capture knows that it is spoilt, and ends as such. */
static void end_spoilt(struct check *check, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = (CUgraph)(void *)&status;
    CHECK_OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK_GIVES(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(!graph);
    CHECK_OK(cuStreamSynchronize(stream));
}

void body_waiting_for_a_captured_stream_spoils_the_capture(struct check *check)
{
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CUstream stream = begin_spoilt(check, relaxed);
    CHECK_GIVES(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_GIVES(cuMemsetD8Async(memory, 0, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_spoilt(check, stream);
    stream = begin_spoilt(check, relaxed);
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(check, stream);
    stream = begin_spoilt(check, relaxed);
    CHECK_GIVES(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(check, stream);
    check_end(check, 0);
}

void body_unsafe_calls_are_forbidden_as_the_mode_says(struct check *check)
{
    check_begin(check, 0);
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    CUstreamCaptureMode mode = relaxed;
    CUevent event = make_event(check);
    CUstream stream = begin_spoilt(check, global);
    CHECK_GIVES(cuMemAlloc(&memory, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(check, stream);
    stream = begin_spoilt(check, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_GIVES(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(check, stream);
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    stream = begin_spoilt(check, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK_GIVES(cuGraphInstantiate(&executable, graph, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_spoilt(check, stream);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuStreamBeginCapture(stream, global));
    CHECK_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == global);
    CHECK_OK(cuMemAlloc(&memory, 64));
    CHECK_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == relaxed);
    CHECK_OK(cuGraphExecDestroy(end_capture(check, stream, 0)));
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuMemFree(memory));
    CHECK_OK(cuGraphExecDestroy(end_capture(check, stream, 0)));
    check_end(check, 0);
}

struct elsewhere {
    struct check check;
    CUcontext context;
    CUstream stream;
    CUresult alloc, end;
};

static void *call_elsewhere(void *argument)
{
    struct elsewhere *other = argument;
    struct check *check = &other->check;
    CUdeviceptr memory = 0;
    CUgraph graph = NULL;
    CHECK_OK(cuCtxSetCurrent(other->context));
    other->alloc = cuMemAlloc(&memory, 64);
    if (!other->alloc)
        CHECK_OK(cuMemFree(memory));
    other->end = cuStreamEndCapture(other->stream, &graph);
    return NULL;
}

static void call_from_other_thread(struct check *check, struct elsewhere *other)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_elsewhere, other) == 0);
    pthread_join(thread, NULL);
    CHECK(!other->check.what);
}

void body_capture_of_another_thread_is_respected(struct check *check)
{
    struct elsewhere other = {.context = check_begin(check, 0)};
    other.stream = begin_spoilt(check, global);
    call_from_other_thread(check, &other);
    CHECK_GIVES(other.alloc, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_GIVES(other.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    end_spoilt(check, other.stream);
    other.stream = begin_spoilt(check, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    call_from_other_thread(check, &other);
    CHECK_OK(other.alloc);
    CHECK_GIVES(other.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    end_spoilt(check, other.stream);
    check_end(check, 0);
}

void body_legacy_stream_is_closed_while_a_blocking_one_is_captured(struct check *check)
{
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CUstream blocking = NULL, stream = check_stream(check);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CHECK_GIVES(cuStreamBeginCapture(NULL, relaxed), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_OK(cuStreamBeginCapture(blocking, relaxed));
    CHECK_GIVES(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_OK(cuStreamIsCapturing(blocking, &status)); /* to ask is no offence */
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_GIVES(cuMemsetD8Async(memory, 0, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_spoilt(check, blocking);
    CHECK_OK(cuStreamBeginCapture(stream, relaxed)); /* a non-blocking one is no matter */
    CHECK_OK(cuMemsetD8Async(memory, 0, 1, NULL));
    CHECK_OK(cuGraphExecDestroy(end_capture(check, stream, 0)));
    check_end(check, 0);
}

void body_capture_must_be_joined_and_ended_where_it_began(struct check *check)
{
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CUstream first = check_stream(check), second = check_stream(check);
    CUevent event = make_event(check);
    CUgraph graph = NULL;
    CHECK_GIVES(cuStreamEndCapture(first, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_OK(cuStreamBeginCapture(first, global));
    CHECK_OK(cuMemsetD8Async(memory, 0, 1, first));
    follow(check, second, event, first);
    CHECK_OK(cuMemsetD8Async(memory, 0, 1, second));
    CHECK_GIVES(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK(!graph);
    CHECK_OK(cuStreamSynchronize(second)); /* it is no longer captured */
    CHECK_OK(cuStreamBeginCapture(first, global));
    follow(check, second, event, first);
    CHECK_GIVES(cuStreamEndCapture(second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_spoilt(check, first);
    check_end(check, 0);
}

void body_events_do_not_lead_in_or_out_of_a_capture(struct check *check)
{
    check_begin(check, 0);
    CUstream first = check_stream(check), second = check_stream(check);
    CUevent inside = make_event(check), outside = make_event(check);
    CHECK_OK(cuEventRecord(outside, second));
    CHECK_OK(cuStreamBeginCapture(first, relaxed));
    CHECK_OK(cuEventRecord(inside, first));
    CHECK_GIVES(cuEventQuery(inside), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_GIVES(cuEventSynchronize(inside), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_GIVES(cuStreamWaitEvent(first, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_spoilt(check, first);
    CHECK_OK(cuStreamBeginCapture(first, relaxed));
    CHECK_OK(cuStreamBeginCapture(second, relaxed));
    CHECK_OK(cuEventRecord(inside, first));
    CHECK_GIVES(cuStreamWaitEvent(second, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_spoilt(check, first);
    end_spoilt(check, second);
    check_end(check, 0);
}

void body_capture_info_names_the_graph_and_the_last_nodes(struct check *check)
{
    check_begin(check, 0);
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *nodes = NULL;
    CUgraph graph = NULL, ended = NULL;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    cuuint64_t id = 0;
    size_t count = 99;
    CHECK_OK(cuStreamBeginCapture(stream, relaxed));
    CHECK_OK(cuMemcpyDtoDAsync(memory + 8, memory, 8, stream));
    CHECK_OK(cuMemsetD8Async(memory, 0, 1, stream));
    CHECK_OK(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, NULL, &count));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0 && count == 1);
    CHECK_OK(cuGraphNodeGetType(nodes[0], &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_MEMSET);
    CHECK_OK(cuStreamEndCapture(stream, &ended));
    CHECK(ended == graph);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_GIVES(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    check_end(check, 0);
}
