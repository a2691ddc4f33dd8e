/* SPDX-License-Identifier: BSD-3-Clause */
/* tracing.c - see tracing.h. */
#include "comm/engine/tracing.h"

#include "collectives/algorithm.h"
#include "comm/engine/choose.h"

#include <stdio.h>

/* Says what calls of this name are, and what the cost model expects of them. It knows nothing of
 * messages between two ranks, nor of devices. */
static void describe(rondo_comm *comm, const struct task *task, uint32_t name)
{
    const struct recorder_kind *kind = &task->choice->kind;
    struct trace_sum what = {.count = kind->record.count,
                             .collective = kind->record.collective,
                             .type = kind->record.type};
    const struct algorithm *algorithm = algorithm_find(kind->algorithm);
    double seconds = 0;

    snprintf(what.algorithm, sizeof(what.algorithm), "%s", kind->algorithm);
    if (algorithm && task->numbered && !task->backend->on_device &&
        !choice_predict(comm, &task->key, algorithm, &comm->choices.counts, &seconds))
        what.predicted = (uint64_t)(seconds * 1e9);
    trace_describe(comm->world.trace, name, &what);
}

/* Names are looked for by where their kind is, as that is faster than writing them. */
static uint32_t name_of(rondo_comm *comm, const struct task *task)
{
    enum { KNOWN = sizeof(comm->world.trace->known) / sizeof(comm->world.trace->known[0]) };
    const struct recorder_kind *kind = &task->choice->kind;
    struct trace *trace = comm->world.trace;
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
    if (!trace_is_described(trace, known->name))
        describe(comm, task, known->name);
    return known->name;
}

void trace_call(rondo_comm *comm, struct task *task)
{
    struct trace *trace = comm->world.trace;
    struct trace_event event = {.kind = TRACE_BEGIN};

    event.call = task->again ? task->execution.traced : trace->calls++;
    event.of.begun.name = name_of(comm, task);
    event.of.begun.number = task->numbered ? comm->calls : 0;
    event.when = clock_nanoseconds();
    task->execution.traced = event.call;
    task->trace_name = event.of.begun.name;
    if (!task->again)
        task->trace_begun = event.when;
    trace_add(trace, event);
}

void trace_call_end(const rondo_comm *comm, const struct task *task)
{
    uint64_t now = clock_nanoseconds();

    trace_add(comm->world.trace,
              (struct trace_event){.kind = TRACE_END, .when = now, .call = task->execution.traced});
    trace_add_up(comm->world.trace, task->trace_name, now - task->trace_begun);
}
