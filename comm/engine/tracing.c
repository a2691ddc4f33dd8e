/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.c - see tracing.h. */
#include "comm/engine/tracing.h"

#include <stdio.h>

/* Names are looked for by where their kind is, as that is faster than writing them. */
static uint32_t name_of(struct trace *trace, const struct recorder_kind *kind)
{
    enum { KNOWN = sizeof(trace->known) / sizeof(trace->known[0]) };
    struct trace_known *known = &trace->known[(uintptr_t)kind / sizeof(struct choice) % KNOWN];
    char call[TRACE_NAME - 30], name[TRACE_NAME];

    if (known->kind == kind && known->fingerprint == kind->record.fingerprint &&
        known->algorithm == kind->algorithm)
        return known->name;
    call_describe(&kind->record, call, sizeof(call));
    snprintf(name, sizeof(name), "%s, %.24s", call, kind->algorithm);
    *known = (struct trace_known){.kind = kind,
                                  .algorithm = kind->algorithm,
                                  .fingerprint = kind->record.fingerprint,
                                  .name = trace_name(trace, name)};
    return known->name;
}

void trace_call(rondo_comm *comm, struct task *task)
{
    struct trace *trace = comm->world.trace;
    struct trace_event event = {.kind = TRACE_BEGIN};

    event.call = task->again ? task->execution.traced : trace->calls++;
    event.of.begun.name = name_of(trace, &task->choice->kind);
    event.of.begun.number = task->numbered ? comm->calls : 0;
    task->execution.traced = event.call;
    trace_add(trace, event);
}

void trace_call_end(const rondo_comm *comm, const struct task *task)
{
    trace_add(comm->world.trace,
              (struct trace_event){.kind = TRACE_END, .call = task->execution.traced});
}
