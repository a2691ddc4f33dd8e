/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.c - the life of a capture: begin, join, end, and what must not be done meanwhile.
 */
#include "standin/driver/capture.h"

#include "standin/driver/base/call.h"
#include "standin/driver/context.h"
#include "standin/driver/stream.h"

#include <stdlib.h>
#include <string.h>

static struct capture *captures;
static _Thread_local uint64_t this_thread;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static uint64_t thread_number(void)
{
    if (!this_thread)
        this_thread = call_unique();
    return this_thread;
}

CUgraphNode *capture_nodes(const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = calloc(count ? count : 1, sizeof(CUgraphNode));
    if (copy && count)
        memcpy(copy, nodes, count * sizeof(CUgraphNode));
    return copy;
}

void capture_reference(struct capture *capture)
{
    capture->references++;
}

void capture_unreference(struct capture *capture)
{
    if (capture && --capture->references == 0)
        free(capture);
}

static bool forbids(const struct capture *capture)
{
    bool own = capture->thread == thread_number();
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return own || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                   capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult capture_forbid(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (forbids(capture)) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult capture_forbid_context(CUcontext context)
{
    CUresult result = capture_forbid();
    for (CUstream stream = context->streams; stream; stream = stream->next) {
        CUresult one = capture_forbid_stream(stream);
        result = one ? one : result;
    }
    return result;
}

CUresult capture_forbid_stream(CUstream stream)
{
    if (!stream->capture)
        return CUDA_SUCCESS;
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool capture_active(CUstream stream)
{
    return stream->capture != NULL;
}

CUresult capture_put(CUstream stream, struct op *op)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode node = graph_add(stream->capture->graph, op, stream->tails, stream->tails_count);
    CUgraphNode *tails = node ? capture_nodes(&node, 1) : NULL;
    if (!tails) {
        stream->capture->invalid = true;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(stream->tails);
    stream->tails = tails;
    stream->tails_count = 1;
    return CUDA_SUCCESS;
}

/* The first blocking stream of the context that is captured, if `stream` is the legacy one. */
static CUstream in_the_way(CUstream stream)
{
    if (stream != stream->context->legacy)
        return NULL;
    CUstream other = stream->context->streams;
    while (other && !(other->capture && !(other->flags & CU_STREAM_NON_BLOCKING)))
        other = other->next;
    return other;
}

CUresult capture_would_allow(CUstream stream)
{
    return in_the_way(stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult capture_allows(CUstream stream)
{
    CUstream other = in_the_way(stream);
    if (other)
        other->capture->invalid = true;
    return other ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

static bool holds(const CUgraphNode *nodes, size_t count, CUgraphNode node)
{
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == node)
            return true;
    }
    return false;
}

CUresult capture_join(CUstream stream, struct capture *capture, const CUgraphNode *nodes,
                      size_t count)
{
    if (capture->ended)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == stream->context->legacy) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    CUgraphNode *tails = calloc(stream->tails_count + count + 1, sizeof(CUgraphNode));
    if (!tails)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t filled = 0;
    for (; filled < stream->tails_count; filled++)
        tails[filled] = stream->tails[filled];
    for (size_t i = 0; i < count; i++) {
        if (!holds(tails, filled, nodes[i]))
            tails[filled++] = nodes[i];
    }
    free(stream->tails);
    stream->tails = tails;
    stream->tails_count = filled;
    if (!stream->capture) {
        stream->capture = capture;
        capture_reference(capture);
    }
    return CUDA_SUCCESS;
}

static void leave(CUstream stream)
{
    capture_unreference(stream->capture);
    stream->capture = NULL;
    free(stream->tails);
    stream->tails = NULL;
    stream->tails_count = 0;
}

/* True if the origin waits for everything that was captured. Nodes depend on earlier ones, so one
 * pass from the end finds out. */
static bool is_joined(const struct capture *capture)
{
    const struct CUgraph_st *graph = capture->graph;
    char *marks = calloc(graph->count + 1, 1);
    if (!marks)
        return false;
    for (size_t i = 0; i < capture->origin->tails_count; i++)
        marks[capture->origin->tails[i]->index] = 1;
    for (size_t i = graph->count; i-- > 0;) {
        for (size_t k = 0; marks[i] && k < graph->nodes[i]->needs_count; k++)
            marks[graph->nodes[i]->needs[k]->index] = 1;
    }
    bool joined = !memchr(marks, 0, graph->count);
    free(marks);
    return joined;
}

/* All streams leave it. Returns its graph, which is now the caller's. */
static CUgraph finish(struct capture *capture)
{
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    capture->ended = true;
    CUgraph graph = capture->graph;
    for (CUstream stream; (stream = context_captured(capture)) != NULL;)
        leave(stream);
    capture_unreference(capture); /* the table's */
    return graph;
}

CUgraph capture_leave(CUstream stream)
{
    if (!stream->capture)
        return NULL;
    stream->capture->invalid = true;
    if (stream->capture->origin == stream)
        return finish(stream->capture);
    leave(stream);
    return NULL;
}

static CUresult begin(CUstream stream, CUstreamCaptureMode mode)
{
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (stream == stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct capture *capture = calloc(1, sizeof *capture);
    CUgraph graph = capture ? graph_open() : NULL;
    if (!graph) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *capture = (struct capture){.mode = mode, .origin = stream, .graph = graph, .references = 2};
    capture->id = call_unique();
    capture->thread = thread_number();
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    result = begin(stream, mode);
    call_unlock();
    return result;
}

static CUresult may_end(const struct capture *capture, CUstream stream)
{
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread_number())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *ret_graph)
{
    if (!ret_graph)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    struct capture *capture = stream->capture;
    CUgraph graph = NULL;
    result = may_end(capture, stream);
    if (!result) {
        if (capture->invalid)
            result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        else if (!is_joined(capture))
            result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        graph = finish(capture);
        if (result)
            graph_forget(graph);
        *ret_graph = result ? NULL : graph;
    } else if (capture) {
        capture->invalid = true;
    }
    call_unlock();
    if (result && graph)
        graph_close(graph);
    return result;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    if (!stream->capture)
        return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    result = capture_would_allow(stream);
    if (!result)
        *status = status_of(stream);
    call_unlock();
    return result;
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    result = capture_would_allow(stream);
    if (!result) {
        *status = status_of(stream);
        if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
            if (id)
                *id = stream->capture->id;
            if (graph)
                *graph = stream->capture->graph;
            if (nodes)
                *nodes = stream->tails;
            if (edges)
                *edges = NULL; /* only edges without data are made here */
            if (count)
                *count = stream->tails_count;
        }
    }
    call_unlock();
    return result;
}

/* Drivers offer the version before edges had data as well. */
#undef cuStreamGetCaptureInfo_v2
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *count);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    return cuStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
