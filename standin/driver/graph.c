/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.c - graphs as recorded lists; exec.c replays them.
 */
#include "standin/driver/graph.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"

#include <stdlib.h>

static CUgraph graphs;

CUgraph graph_open(void)
{
    CUgraph graph = calloc(1, sizeof *graph);
    if (graph) {
        graph->next = graphs;
        graphs = graph;
    }
    return graph;
}

void graph_forget(CUgraph graph)
{
    CUgraph *link = &graphs;
    while (*link && *link != graph)
        link = &(*link)->next;
    if (*link)
        *link = graph->next;
}

void graph_close(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        op_release(graph->nodes[i]->op);
        free(graph->nodes[i]->needs);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph);
}

CUgraphNode graph_add(CUgraph graph, struct op *op, const CUgraphNode *needs, size_t needs_count)
{
    if (graph->count == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        CUgraphNode *nodes = realloc(graph->nodes, room * sizeof(CUgraphNode));
        if (!nodes)
            return NULL;
        graph->nodes = nodes;
        graph->room = room;
    }
    CUgraphNode node = calloc(1, sizeof *node);
    CUgraphNode *copy = node ? capture_nodes(needs, needs_count) : NULL;
    if (!copy) {
        free(node);
        return NULL;
    }
    *node = (struct CUgraphNode_st){op, copy, needs_count, graph->count};
    graph->nodes[graph->count++] = node;
    return node;
}

bool graph_known(CUgraph graph)
{
    CUgraph known = graphs;
    while (known && known != graph)
        known = known->next;
    return known;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    bool known = graph_known(graph);
    if (known)
        graph_forget(graph);
    call_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    graph_close(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    bool known = graph_known(graph);
    if (known) {
        for (size_t i = 0; nodes && i < *count; i++)
            nodes[i] = i < graph->count ? graph->nodes[i] : NULL;
        if (!nodes || *count > graph->count)
            *count = graph->count;
    }
    call_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->op->kind->type;
    return CUDA_SUCCESS;
}
