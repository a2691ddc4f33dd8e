/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * external.c - see external.h. What a launch records is the event's latest record from the launch
 * on, not from when the node runs: whoever waits for the event after the launch waits for it.
 */
#include "standin/driver/external.h"

#include "standin/driver/base/call.h"

struct external {
    struct op op;
    CUevent event;
};

/* In a graph within a graph, whose launches nobody sees begin. */
static void run_alone(struct op *op)
{
    call_lock();
    struct record *record = external_begin(op);
    call_unlock();
    external_run(op, record);
}

static const struct op_kind record_kind = {CU_GRAPH_NODE_TYPE_EVENT_RECORD, run_alone, NULL, NULL,
                                           NULL};
static const struct op_kind wait_kind = {CU_GRAPH_NODE_TYPE_WAIT_EVENT, run_alone, NULL, NULL,
                                         NULL};

static struct op *make(CUevent event, const struct op_kind *kind)
{
    struct external *external = op_new(sizeof *external, kind);
    if (!external)
        return NULL;
    external->event = event;
    return &external->op;
}

struct op *external_record(CUevent event)
{
    return make(event, &record_kind);
}

struct op *external_wait(CUevent event)
{
    return make(event, &wait_kind);
}

bool external_is(const struct op *op)
{
    return op->kind == &record_kind || op->kind == &wait_kind;
}

struct record *external_begin(const struct op *op)
{
    CUevent event = event_find(((const struct external *)op)->event);
    if (!event)
        return NULL;
    return op->kind == &record_kind ? event_record_anew(event) : event_latest(event);
}

void external_run(const struct op *op, struct record *record)
{
    if (!record)
        return;
    call_lock();
    if (op->kind == &record_kind)
        event_complete(record);
    else
        event_await(record);
    event_release(record);
    call_unlock();
}
