/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.h - a graph: operations, and which of them each one waits for.
 *
 * Nodes come in an order in which each one depends on earlier ones only.
 */
#pragma once

#include "standin/driver/op.h"

#include <cuda.h>
#include <stdbool.h>

struct CUgraphNode_st {
    struct op *op;
    CUgraphNode *needs;
    size_t needs_count;
    size_t index; /* in its graph */
};

struct CUgraph_st {
    struct CUgraph_st *next; /* all live ones */
    CUgraphNode *nodes;
    size_t count, room;
};

/* An empty graph, in the table of live ones; NULL when memory is out. All under the lock. */
CUgraph graph_open(void);
bool graph_known(CUgraph graph);

/* Without the lock: operations may own what takes it. The graph must be out of the table:
 * graph_forget(). */
void graph_close(CUgraph graph);
void graph_forget(CUgraph graph);

/* Adds an operation (its reference is taken over) that depends on `needs`; NULL when memory is
 * out. */
CUgraphNode graph_add(CUgraph graph, struct op *op, const CUgraphNode *needs, size_t needs_count);
