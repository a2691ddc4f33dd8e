/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - a thread per communicator with plans on its device, which looks after calls that
 * streams have still to run.
 *
 * Streams write how far they are, so a wait that lasts has a step and a peer, and health.c finds
 * out what is the matter. When the communicator is broken, whatever its streams wait for is given
 * to them, again and again until all have passed: they end with wrong data, but they end. Nothing
 * here waits for the device.
 */
#include "comm/engine/choose.h"
#include "comm/failure/blame.h"
#include "comm/failure/error.h"
#include "comm/gpu/plan.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "comm/failure/health.h"
#include "comm/failure/mismatch.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two looks: while calls are on their way, while graphs may run, and while there is
 * nothing to be seen. */
static const double short_nap = 1e-3;
static const double graph_nap = 1e-2;
static const double long_nap = 0.2;

static void ring(struct gpu_arena *arena)
{
    atomic_fetch_add_explicit(&arena->bell, 1, memory_order_release);
    syscall(SYS_futex, &arena->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_ring(struct gpu_plans *plans)
{
    for (int rank = 0; rank < plans->comm->size; rank++)
        if (rank != plans->comm->rank)
            ring(plans->views[rank].arena);
}

/* ---- Calls on their way ---------------------------------------------------------------------- */

rondo_result gpu_flight_open(struct gpu_plans *plans, const struct task *tasks, int count,
                             struct gpu_flight **ret_flight)
{
    struct gpu_flight *flight = calloc(1, sizeof(*flight) + (size_t)count * sizeof(*tasks));
    rondo_result result = RONDO_OK;

    if (!flight)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call on a CUDA stream.");
    flight->count = count;
    flight->pairs = collective_is_pair(tasks[count - 1].key.collective);
    memcpy(flight->tasks, tasks, (size_t)count * sizeof(*tasks));
    for (int i = 0; i < count && !result; i++) {
        struct execution *x = &flight->tasks[i].execution;

        *x = (struct execution){.world = &plans->comm->world};
        result = gpu_find_plan(plans, &tasks[i].key, &x->plan);
        if (!result)
            result =
                exec_shape_plan(x->plan, tasks[i].key.count, rondo_type_size(tasks[i].key.type),
                                plans->comm->world.slot_bytes, &x->shape);
        if (result)
            break;
        x->fingerprint = choice_fingerprint(&tasks[i].key) | 1;
        exec_start(x);
    }
    if (result) {
        free(flight);
        return result;
    }
    flight->number = ++plans->calls;
    *ret_flight = flight;
    return RONDO_OK;
}

void gpu_watch_add(struct gpu_plans *plans, struct gpu_flight *flight)
{
    struct gpu_errors *errors = plans->errors;
    bool first;

    if (!flight)
        return;
    flight->added = true;
    lock_take(&errors->lock);
    errors->users++;
    errors->under_way++;
    lock_give(&errors->lock);
    flight->errors = errors;
    gpu_flights_count(1);
    lock_take(&plans->flights_lock);
    first = !plans->flights;
    *plans->last_flight = flight;
    plans->last_flight = &flight->next;
    lock_give(&plans->flights_lock);
    if (first)
        ring(plans->own);
}

void gpu_flight_abandon(struct gpu_plans *plans, struct gpu_flight *flight)
{
    if (!flight->added) {
        free(flight);
        return;
    }
    lock_take(&plans->flights_lock);
    flight->abandoned = true;
    lock_give(&plans->flights_lock);
}

/* The oldest call that has not ended, or of which its stream does not know yet how; those before it
 * are forgotten. Only the watch removes. */
static struct gpu_flight *oldest(struct gpu_plans *plans)
{
    struct gpu_flight *flight;

    (void)gpu_judge(plans);
    lock_take(&plans->flights_lock);
    while ((flight = plans->flights) && !flight->errors) {
        plans->flights = flight->next;
        if (!plans->flights)
            plans->last_flight = &plans->flights;
        gpu_flights_count(-1);
        free(flight);
    }
    lock_give(&plans->flights_lock);
    return flight;
}

/* ---- Looking after one ----------------------------------------------------------------------- */

/* The task that the stream waits in, its execution set to where it stands; NULL: it does not. */
static struct task *standing(struct gpu_plans *plans, struct gpu_flight *flight)
{
    uint32_t at = atomic_load_explicit(&plans->progress->at, memory_order_acquire);
    uint32_t step = at & 0xffff;
    struct task *task = flight->tasks;
    struct execution *x;

    if (at >> 16 != (flight->number & 0xffff))
        return NULL;
    if (flight->pairs) {
        if (step >= (uint32_t)flight->count)
            return NULL;
        task += step;
        step = 0;
    }
    x = &task->execution;
    if (step >= x->plan->step_count)
        return NULL;
    x->programs[0].at = step;
    x->programs[0].blamed = x->blamed = flight->pairs ? task->key.root : x->plan->steps[step].peer;
    for (int i = 1; i < x->plan->programs; i++)
        x->programs[i].done = true;
    return task;
}

static int lane_of(const struct gpu_flight *flight)
{
    return flight->pairs ? GPU_LANE_PAIR : GPU_LANE_COLLECTIVE;
}

/* Does the call wait for a message? Otherwise it waits until its own message is taken. */
static bool waits_for_data(const struct gpu_flight *flight, const struct task *task)
{
    const struct execution *x = &task->execution;

    if (flight->pairs)
        return task->key.collective == RONDO_RECV;
    return x->plan->steps[x->programs[0].at].event == PLAN_DATA;
}

/* Has the peer that is waited for sent a message, but of another call? */
static bool is_foreign(const struct gpu_plans *plans, struct gpu_flight *flight, struct task *task)
{
    struct execution *x = &task->execution;
    uint32_t before = flight->foreign;

    if (!waits_for_data(flight, task))
        return false;
    x->foreign = atomic_load_explicit(&gpu_mail(plans->own, x->blamed, lane_of(flight))->full,
                                      memory_order_acquire);
    flight->foreign = x->foreign != x->fingerprint ? x->foreign : 0;
    /* Twice the same: between two reads of a look the stream may have gone on to the next call. */
    return flight->foreign && flight->foreign == before;
}

/* Has the mail changed that the stream waits for, so that it will go on? */
static bool is_here(const struct gpu_plans *plans, const struct gpu_flight *flight,
                    const struct task *task)
{
    const struct execution *x = &task->execution;
    int own = plans->comm->rank, lane = lane_of(flight);

    if (waits_for_data(flight, task))
        return atomic_load_explicit(&gpu_mail(plans->own, x->blamed, lane)->full,
                                    memory_order_acquire) == x->fingerprint;
    return !atomic_load_explicit(&gpu_mail(plans->views[x->blamed].arena, own, lane)->full,
                                 memory_order_acquire);
}

/* As look_after(), for a call that is one kernel. */
static void look_after_kernel(struct gpu_plans *plans, struct gpu_flight *flight)
{
    bool mismatch = false;
    struct task *task = gpu_kernel_standing(plans, flight, &mismatch);
    double now = clock_seconds();

    if (task && flight->began)
        blame_look_at_stream(plans->comm, task, flight->began, now);
    if (task && mismatch)
        mismatch_on_stream(plans->comm, task);
    else if (task && flight->began && !health_stream_check(plans->comm, task, now - flight->began))
        health_stream_missing(plans->comm, task, now, &flight->missed);
    if (!flight->began)
        flight->began = now;
}

static void look_after(struct gpu_plans *plans, struct gpu_flight *flight)
{
    struct task *task = standing(plans, flight);
    rondo_comm *comm = plans->comm;
    double now = clock_seconds();

    uint32_t at = atomic_load_explicit(&plans->progress->at, memory_order_acquire);

    if (!task || !flight->began || at != flight->at) {
        flight->began = task ? now : 0;
        flight->at = at;
        flight->foreign = 0;
        flight->missed = 0;
        return;
    }
    blame_look_at_stream(comm, task, flight->began, now);
    if (is_foreign(plans, flight, task))
        mismatch_on_stream(comm, task);
    else if (!health_stream_check(comm, task, now - flight->began) && !is_here(plans, flight, task))
        health_stream_missing(comm, task, now, &flight->missed);
}

bool gpu_flight_rests(struct gpu_plans *plans, struct gpu_flight *flight)
{
    uint32_t at = atomic_load_explicit(&plans->progress->at, memory_order_acquire);
    struct task *task;

    if (at >> 16 != (flight->number & 0xffff))
        return true; /* it has not come to its first wait */
    task = standing(plans, flight);
    return task && !is_here(plans, flight, task);
}

/* Let the stream go on at its wait in this call, and touch no other mail: a peer that is let go as
 * well may need the same mail to be empty that this rank needs to be full. */
static void let_go(struct gpu_plans *plans, struct gpu_flight *flight)
{
    struct task *task = standing(plans, flight);
    const struct execution *x;
    int own = plans->comm->rank;

    if (!task)
        return;
    x = &task->execution;
    if (waits_for_data(flight, task))
        atomic_store_explicit(&gpu_mail(plans->own, x->blamed, lane_of(flight))->full,
                              x->fingerprint, memory_order_release);
    else
        atomic_store_explicit(&gpu_mail(plans->views[x->blamed].arena, own, lane_of(flight))->full,
                              0, memory_order_release);
}

/* Streams are let go only when the others know, and have left as well. */
static void look_at_broken(struct gpu_plans *plans, struct gpu_flight *flight)
{
    if (!gpu_leave(plans, flight))
        return;
    gpu_kernel_stop(plans);
    if (atomic_load_explicit(&plans->graphs, memory_order_acquire))
        gpu_graph_let_go(plans);
    if (flight)
        let_go(plans, flight);
}

static void look(struct gpu_plans *plans)
{
    struct gpu_flight *flight = oldest(plans);

    if (atomic_load_explicit(&plans->comm->broken, memory_order_acquire)) {
        look_at_broken(plans, flight);
        return;
    }
    if (atomic_load_explicit(&plans->graphs, memory_order_acquire))
        gpu_graph_look_after(plans);
    if (flight && flight->kernel)
        look_after_kernel(plans, flight);
    else if (flight)
        look_after(plans, flight);
    else
        gpu_outside_if_idle(plans);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool all_ended(struct gpu_plans *plans)
{
    bool none;

    lock_take(&plans->flights_lock);
    none = !plans->flights;
    lock_give(&plans->flights_lock);
    return none;
}

static double nap_time(struct gpu_plans *plans)
{
    bool graphs = atomic_load_explicit(&plans->graphs, memory_order_acquire);
    bool leaves = atomic_load_explicit(&plans->comm->broken, memory_order_acquire) &&
                  atomic_load_explicit(&plans->leaving, memory_order_relaxed) != GPU_LEFT;

    if (leaves || !all_ended(plans) || gpu_graph_waits(plans))
        return short_nap;
    return graphs ? graph_nap : long_nap;
}

void gpu_look_until_closed(struct gpu_plans *plans, void (*look_once)(struct gpu_plans *),
                           double (*seconds)(struct gpu_plans *))
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    if (cuda_enter(&plans->gpu->device))
        return;
    /* What is captured elsewhere is no business of this thread. */
    plans->gpu->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    while (!atomic_load_explicit(&plans->closing, memory_order_acquire)) {
        uint32_t heard = atomic_load_explicit(&plans->own->bell, memory_order_acquire);
        struct timespec time = {0, 0};

        look_once(plans);
        time.tv_nsec = (long)(seconds(plans) * 1e9);
        syscall(SYS_futex, &plans->own->bell, FUTEX_WAIT, heard, &time, NULL, 0);
    }
    cuda_leave(&plans->gpu->device);
}

static void *watch(void *argument)
{
    gpu_look_until_closed(argument, look, nap_time);
    return NULL;
}

rondo_result gpu_watch_start(struct gpu_plans *plans)
{
    plans->unanswered = -1;
    if (pthread_create(&plans->watch, NULL, watch, plans))
        return rondo_fail(RONDO_ERROR_SYSTEM, "Cannot start the thread that looks after calls on "
                                              "the device.");
    plans->watching = true;
    gpu_judge_enlist(plans);
    return gpu_map_start(plans);
}

/* Does the watch have to stay for a call or a graph? A graph may go on with another call, which
 * nobody knows, so it has to be quiet for a while. */
static bool is_busy(struct gpu_plans *plans, double *seen)
{
    const double quiet = 0.05; /* seconds */
    bool graphs = atomic_load_explicit(&plans->graphs, memory_order_acquire);
    bool broken = atomic_load_explicit(&plans->comm->broken, memory_order_acquire);

    if (!all_ended(plans))
        return true;
    if (gpu_graph_waits(plans))
        *seen = clock_seconds();
    return graphs && (broken ? clock_seconds() - *seen < quiet : gpu_graph_waits(plans));
}

bool gpu_watch_stop(struct gpu_plans *plans)
{
    const double patience = 2; /* seconds for streams that were let go */
    const struct timespec doze = {0, 50 * 1000};
    double broken_since = 0, seen = clock_seconds();
    bool broken = false;

    if (!plans->watching)
        return true;
    while (is_busy(plans, &seen)) {
        broken = atomic_load_explicit(&plans->comm->broken, memory_order_acquire);
        if (broken && !broken_since)
            broken_since = clock_seconds();
        if (broken && clock_seconds() - broken_since > patience)
            break;
        ring(plans->own);
        nanosleep(&doze, NULL);
    }
    atomic_store_explicit(&plans->closing, true, memory_order_release);
    ring(plans->own);
    pthread_join(plans->watch, NULL);
    gpu_map_stop(plans);
    gpu_judge_delist(plans);
    /* A graph that was let go may still be on its way to the end. */
    return all_ended(plans) &&
           !(broken && atomic_load_explicit(&plans->graphs, memory_order_acquire));
}
