/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing.c - when calls on CUDA streams were queued, began and ended, for the trace of their
 * communicator, if it has one.
 *
 *     the stream    ... | event `begin` | what the call does | event `end` | ended = number | ...
 *
 * An event has a time of the device's clock. By the host's clock its stream came to it after a look
 * at which it had not come so far, and before the next one; every look at every call narrows down
 * how far the two clocks are apart, so that soon the time of an event is known to microseconds.
 *
 * Runs on: threads that queue calls, the watchdog. Locks: the one of the calls in flight.
 * Owns: the events.
 */
#include "comm/gpu/plan.h"
#include "comm/engine/choose.h"

#include "base/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BASE_LASTS 1e9   /* nanoseconds: times from one event to another are 32-bit numbers */
#define DRIFT      50e-6 /* by which the clocks of a host and a device may differ in speed */

struct gpu_timing {
    struct gpu_timing *next; /* of those that no call has */
    CUevent begin, end;
    uint32_t call; /* number in the trace */
    /* The watchdog's, in nanoseconds: */
    uint64_t unseen;     /* the last look at which the stream had not come to its next event */
    uint64_t began;      /* 0: the stream has not been seen to have come to the call */
    double since;        /* from the base to there, by the device's clock */
    _Atomic bool closed; /* `end` is recorded */
};

struct gpu_timings {
    struct trace *trace; /* a writer of its own in the communicator's; NULL: there is none */
    uint32_t calls;      /* that were queued so far */
    struct gpu_timing *spare;
    /* The watchdog's: */
    CUevent base;      /* from which times of the device are counted; NULL: none so far */
    double low, high;  /* nanoseconds of the host's clock: when that was, at least and at most */
    double known_from; /* the moment since the base by which these were known last */
};

/* ---- The clocks ------------------------------------------------------------------------------ */

static bool elapsed(const struct gpu_plans *plans, CUevent from, CUevent to, double *ret_ns)
{
    float milliseconds = 0;
    CUresult code = plans->gpu->device.driver->cuEventElapsedTime(&milliseconds, from, to);

    *ret_ns = 1e6 * (double)milliseconds;
    return !code;
}

/* The stream came to what is `since` nanoseconds behind the base, by the host's clock between these
 * two looks. Clocks that differ in speed may leave nothing between the bounds: the last look is
 * right then. */
static void learn(struct gpu_timings *timings, double since, uint64_t unseen, uint64_t seen)
{
    double drift = DRIFT * fmax(since - timings->known_from, 0);

    timings->low = fmax(timings->low - drift, (double)unseen - since);
    timings->high = fmin(timings->high + drift, (double)seen - since);
    if (timings->low > timings->high) {
        timings->low = (double)unseen - since;
        timings->high = (double)seen - since;
    }
    timings->known_from = fmax(timings->known_from, since);
}

/* Nanoseconds since the base; false: the driver does not say. The first event becomes the base. */
static bool since_base(const struct gpu_plans *plans, CUevent event, double *ret_ns)
{
    struct gpu_timings *timings = plans->timings;

    if (timings->base)
        return elapsed(plans, timings->base, event, ret_ns);
    timings->low = -INFINITY;
    timings->high = INFINITY;
    timings->known_from = 0;
    *ret_ns = 0;
    return true;
}

/* The beginning of this call takes the place of a base that is none yet, or far behind. */
static void move_base(struct gpu_timings *timings, struct gpu_timing *timing)
{
    CUevent base = timings->base;
    double since = timing->since;

    if (base && since < BASE_LASTS)
        return;
    timings->base = timing->begin;
    timing->begin = base;
    timings->low += since;
    timings->high += since;
    timings->known_from -= since;
}

/* Writes an event; threads that queue calls do, and the watchdog. */
static void add(struct gpu_plans *plans, struct trace_event event)
{
    lock_take(&plans->inflights_lock);
    trace_add(plans->timings->trace, event);
    lock_give(&plans->inflights_lock);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Once per communicator. */
static struct gpu_timings *timings_of(struct gpu_plans *plans)
{
    const struct trace *trace = plans->comm->world.trace;

    if (plans->timings)
        return plans->timings;
    plans->timings = calloc(1, sizeof(*plans->timings));
    if (plans->timings && trace_has_ring(trace) && plans->gpu->device.driver->cuEventElapsedTime)
        plans->timings->trace = trace_open_beside(trace);
    return plans->timings;
}

static void timing_free(const struct cuda_driver *cuda, struct gpu_timing *timing)
{
    if (timing->begin)
        cuda->cuEventDestroy(timing->begin);
    if (timing->end)
        cuda->cuEventDestroy(timing->end);
    free(timing);
}

static bool make_events(const struct cuda_driver *cuda, struct gpu_timing *timing)
{
    return (timing->begin || !cuda->cuEventCreate(&timing->begin, CU_EVENT_DEFAULT)) &&
           (timing->end || !cuda->cuEventCreate(&timing->end, CU_EVENT_DEFAULT));
}

/* Some thread may be capturing, which forbids others to make events. NULL: there can be none. */
static struct gpu_timing *take_spare(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct gpu_timing *timing;
    bool made;

    lock_take(&plans->inflights_lock);
    timing = plans->timings->spare;
    if (timing)
        plans->timings->spare = timing->next;
    lock_give(&plans->inflights_lock);
    if (!timing)
        timing = calloc(1, sizeof(*timing));
    if (!timing)
        return NULL;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    made = make_events(cuda, timing);
    if (!made)
        timing_free(cuda, timing);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return made ? timing : NULL;
}

static uint32_t name_of(const struct gpu_plans *plans, const struct gpu_run *run,
                        const struct choice_key *what, int count)
{
    const struct call_record record = choice_record(what);
    char call[TRACE_NAME - 30], name[TRACE_NAME];

    call_describe(&record, call, sizeof(call));
    if (count > 1)
        snprintf(name, sizeof(name), "%d messages", count);
    else if (run->x.plan)
        snprintf(name, sizeof(name), "%s, %.24s", call, run->x.plan->algorithm);
    else
        snprintf(name, sizeof(name), "%s", call);
    return trace_name(plans->timings->trace, name);
}

/* The stream comes to an event of the call when it is recorded behind all operations so far. */
static void record(struct gpu_run *run, CUevent event)
{
    gpu_ops_flush(&run->ops);
    if (!run->ops.result)
        run->ops.result = cuda_result(
            run->plans->gpu->device.driver->cuEventRecord(event, run->ops.stream), "cuEventRecord");
}

void gpu_timing_open(struct gpu_run *run, const struct choice_key *what, int count)
{
    struct gpu_plans *plans = run->plans;
    struct trace_event event = {.kind = TRACE_QUEUED};
    struct gpu_timing *timing;

    if (!plans->comm->world.trace || !run->inflight)
        return;
    if (!timings_of(plans) || !plans->timings->trace || !(timing = take_spare(plans)))
        return;
    event.of.begun.name = name_of(plans, run, what, count);
    event.of.begun.number = run->inflight->number;
    event.stream = (uint32_t)plans->stream;
    event.when = clock_nanoseconds();
    event.call = plans->timings->calls++;
    *timing = (struct gpu_timing){
        .begin = timing->begin, .end = timing->end, .call = event.call, .unseen = event.when};
    add(plans, event);
    run->inflight->timing = timing;
    record(run, timing->begin);
}

void gpu_timing_close(struct gpu_run *run)
{
    struct gpu_timing *timing = run->inflight ? run->inflight->timing : NULL;

    if (!timing)
        return;
    record(run, timing->end);
    /* Release, pairs with the acquire in gpu_timing_look(): that asks for this recording. */
    atomic_store_explicit(&timing->closed, !run->ops.result, memory_order_release);
}

/* ---- The watchdog ---------------------------------------------------------------------------- */

/* The stream has come to the call, which began as early as is possible by all that is known. */
static void see_begin(struct gpu_plans *plans, struct gpu_timing *timing)
{
    struct gpu_timings *timings = plans->timings;

    if (!since_base(plans, timing->begin, &timing->since))
        return;
    learn(timings, timing->since, timing->unseen, clock_nanoseconds());
    timing->began = (uint64_t)(timings->low + timing->since);
    add(plans, (struct trace_event){
                   .kind = TRACE_STREAM_BEGIN, .when = timing->began, .call = timing->call});
}

void gpu_timing_look(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_timing *timing = inflight->timing;
    uint64_t now = clock_nanoseconds();

    if (!timing)
        return;
    if (!timing->began && !cuda->cuEventQuery(timing->begin))
        see_begin(plans, timing);
    else if (!timing->began)
        timing->unseen = now;
    else if (atomic_load_explicit(&timing->closed, memory_order_acquire) &&
             cuda->cuEventQuery(timing->end))
        timing->unseen = now;
}

static void see_end(struct gpu_plans *plans, struct gpu_timing *timing)
{
    double took;

    if (!timing->began)
        see_begin(plans, timing);
    if (!timing->began || !elapsed(plans, timing->begin, timing->end, &took))
        return;
    add(plans, (struct trace_event){.kind = TRACE_STREAM_END,
                                    .when = timing->began + (uint64_t)took,
                                    .call = timing->call});
    learn(plans->timings, timing->since + took, timing->unseen, clock_nanoseconds());
    move_base(plans->timings, timing);
}

void gpu_timing_end(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    struct gpu_timing *timing = inflight->timing;

    see_end(plans, timing);
    inflight->timing = NULL;
    lock_take(&plans->inflights_lock);
    timing->next = plans->timings->spare;
    plans->timings->spare = timing;
    lock_give(&plans->inflights_lock);
}

void gpu_timings_close(struct gpu_plans *plans)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_timings *timings = plans->timings;

    if (!timings)
        return;
    while (timings->spare) {
        struct gpu_timing *timing = timings->spare;

        timings->spare = timing->next;
        timing_free(cuda, timing);
    }
    if (timings->base)
        cuda->cuEventDestroy(timings->base);
    trace_close(timings->trace);
    free(timings);
    plans->timings = NULL;
}
