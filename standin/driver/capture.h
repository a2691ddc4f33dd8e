/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.h - streams that write down their operations instead of doing them. All under the lock.
 *
 * A capture begins at one stream; others join it by waiting for an event that was recorded in it,
 * and must be waited for by the first one before it ends.
 */
#pragma once

#include "standin/driver/graph.h"
#include "standin/driver/queue.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct capture {
    struct capture *next; /* all that are going on */
    uint64_t id;
    unsigned references; /* streams in it, events recorded in it, the table */
    uint64_t thread;     /* who began it */
    CUstreamCaptureMode mode;
    CUstream origin;
    CUgraph graph;
    bool invalid; /* something illegal was done */
    bool ended;
};

/* Says whether an unsafe call (one that might wait for streams or work on the legacy one) is
 * allowed to this thread now. If not, it spoils the captures that forbid it. */
CUresult capture_forbid(void);

/* Judges a call that waits for all of a context: not allowed while any stream of it is captured. */
CUresult capture_forbid_context(CUcontext context);

/* A call that is never legal on a captured stream: the error if this one is, which spoils its
 * capture. */
CUresult capture_forbid_stream(CUstream stream);

/* True if the stream is captured. Then an operation for it goes to capture_put() (which takes over
 * the reference). */
bool capture_active(CUstream stream);
CUresult capture_put(CUstream stream, struct op *op);

/* Says whether work may go to the (uncaptured) stream: not to the legacy one while a blocking
 * stream of the context is captured. */
CUresult capture_allows(CUstream stream);

/* Answers as capture_allows() does, without spoiling the captures that stand in the way. */
CUresult capture_would_allow(CUstream stream);

/* The stream joins the capture and waits for the nodes, beside what it waits for already. */
CUresult capture_join(CUstream stream, struct capture *capture, const CUgraphNode *nodes,
                      size_t count);

void capture_reference(struct capture *capture);
void capture_unreference(struct capture *capture);

/* The stream's handle is going away: that spoils its capture. If it began it, it is over:
 * returns the graph, to be forgotten and closed, else NULL. */
CUgraph capture_leave(CUstream stream);

/* A copy of the nodes, from malloc; NULL when memory is out. */
CUgraphNode *capture_nodes(const CUgraphNode *nodes, size_t count);
