/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog.c - a thread per communicator with plans on its device, which looks after calls that
 * streams have still to run.
 *
 * Streams write how far they are, so a wait that lasts has a step and a peer, and health.c finds
 * out what is the matter. When the communicator is broken, whatever its streams wait for is given
 * to them, again and again until all have passed: they end with wrong data, but they end. Nothing
 * here waits for the device.
 */
#include "comm/failure/blame.h"
#include "comm/failure/error.h"
#include "comm/gpu/plan.h"

#include "base/clock.h"
#include "base/fail.h"
#include "comm/failure/health.h"
#include "comm/failure/mismatch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void ring(struct gpu_arena *arena)
{
    atomic_fetch_add_explicit(&arena->doorbell, 1, memory_order_release);
    syscall(SYS_futex, &arena->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_ring(struct gpu_plans *plans)
{
    for (int rank = 0; rank < plans->comm->size; rank++)
        if (rank != plans->comm->rank)
            ring(plans->views[rank].arena);
}

/* ---- Calls on their way ---------------------------------------------------------------------- */

struct gpu_inflight *gpu_inflight_open(struct gpu_plans *plans, const struct task *tasks, int count)
{
    struct gpu_inflight *inflight;

    lock_take(&plans->inflights_lock);
    inflight = spare_take(&plans->spares, sizeof(*inflight) + (size_t)count * sizeof(*tasks));
    lock_give(&plans->inflights_lock);
    if (!inflight) {
        rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call on a CUDA stream.");
        return NULL;
    }
    *inflight = (struct gpu_inflight){.number = ++plans->calls, .count = count};
    memcpy(inflight->tasks, tasks, (size_t)count * sizeof(*tasks));
    return inflight;
}

void gpu_watchdog_add(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    struct gpu_errors *errors = plans->errors;
    bool first;

    if (!inflight)
        return;
    inflight->added = true;
    lock_take(&errors->lock);
    errors->users++;
    errors->under_way++;
    lock_give(&errors->lock);
    inflight->errors = errors;
    cuda_count_inflights(1);
    lock_take(&plans->inflights_lock);
    first = !plans->inflights;
    *plans->last_inflight = inflight;
    plans->last_inflight = &inflight->next;
    lock_give(&plans->inflights_lock);
    if (first)
        ring(plans->own);
}

void gpu_inflight_abandon(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    lock_take(&plans->inflights_lock);
    if (!inflight || !inflight->added)
        spare_give(&plans->spares, inflight);
    else
        inflight->abandoned = true;
    lock_give(&plans->inflights_lock);
}

/* The oldest call that has not ended, or of which its stream does not know yet how; those before it
 * are forgotten. One that is abandoned stays: a stream may come to a part of it. Only the watchdog
 * removes. */
static struct gpu_inflight *oldest(struct gpu_plans *plans)
{
    struct gpu_inflight *inflight;

    (void)gpu_judge(plans);
    lock_take(&plans->inflights_lock);
    while ((inflight = plans->inflights) && !inflight->errors && !inflight->abandoned) {
        if (inflight->timing) {
            lock_give(&plans->inflights_lock);
            gpu_timing_end(plans, inflight);
            lock_take(&plans->inflights_lock);
        }
        plans->inflights = inflight->next;
        if (!plans->inflights)
            plans->last_inflight = &plans->inflights;
        cuda_count_inflights(-1);
        spare_give(&plans->spares, inflight);
    }
    lock_give(&plans->inflights_lock);
    return inflight;
}

/* ---- Looking after one ----------------------------------------------------------------------- */

/* The task that the stream waits in, its execution set to where it stands; NULL: it does not. */
static struct task *standing(const struct gpu_plans *plans, struct gpu_inflight *inflight,
                             struct gpu_wait *ret_wait)
{
    bool waits = gpu_wait_read(plans, ret_wait) && !ret_wait->graph;
    /* After the word: so that is of this call, not of one after it. */
    uint32_t ended = atomic_load_explicit(&plans->progress->ended, memory_order_acquire);
    uint32_t step = ret_wait->step;
    struct task *task = inflight->tasks;
    struct execution *x;

    if (!waits || (int32_t)(ended - inflight->number) >= 0)
        return NULL;
    if (inflight->pairs) {
        if (step >= (uint32_t)inflight->count)
            return NULL;
        task += step;
        step = 0;
    }
    x = &task->execution;
    if (step >= x->plan->step_count)
        return NULL;
    x->programs[0].at = step;
    x->programs[0].blamed = x->blamed = ret_wait->peer;
    for (int i = 1; i < x->plan->programs; i++)
        x->programs[i].done = true;
    return task;
}

/* True if the peer that is waited for has sent a message, but of another call. */
static bool is_foreign(const struct gpu_plans *plans, struct gpu_inflight *inflight,
                       struct task *task, const struct gpu_wait *wait)
{
    struct execution *x = &task->execution;
    uint32_t before = inflight->foreign;

    if (!wait->data)
        return false;
    x->foreign = atomic_load_explicit(&gpu_mailbox(plans->own, wait->peer, wait->channel)->full,
                                      memory_order_acquire);
    inflight->foreign = x->foreign != x->fingerprint ? x->foreign : 0;
    /* Twice the same: between two reads of a look the stream may have gone on to the next call. */
    return inflight->foreign && inflight->foreign == before;
}

/* Checks on a call that is one kernel, and on the peers that it waits for. */
static void look_after_kernel(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    bool mismatch, moved;
    struct task *task = gpu_kernel_standing(plans, inflight, &mismatch, &moved);
    double now = clock_seconds();

    if (task && mismatch) {
        mismatch_on_stream(plans->comm, task);
        return;
    }
    /* The time in the queue is no wait for a peer. */
    if (!task || !inflight->began || moved) {
        inflight->began = task ? now : 0;
        inflight->missed = 0;
        return;
    }
    blame_look_at_stream(plans->comm, task, inflight->began, now);
    if (!health_stream_check(plans->comm, task, now - inflight->began))
        health_stream_missing(plans->comm, task, now, &inflight->missed);
}

static void look_after(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    struct gpu_wait wait;
    struct task *task = standing(plans, inflight, &wait);
    rondo_comm *comm = plans->comm;
    double now = clock_seconds();

    if (!task || !inflight->began || wait.word != inflight->word) {
        inflight->began = task ? now : 0;
        inflight->word = wait.word;
        inflight->foreign = 0;
        inflight->missed = 0;
        return;
    }
    blame_look_at_stream(comm, task, inflight->began, now);
    if (is_foreign(plans, inflight, task, &wait))
        mismatch_on_stream(comm, task);
    else if (!health_stream_check(comm, task, now - inflight->began) &&
             !gpu_wait_is_over(plans, &wait))
        health_stream_missing(comm, task, now, &inflight->missed);
}

bool gpu_backing_off(const struct gpu_plans *plans)
{
    struct gpu_wait wait;

    if (gpu_wait_read(plans, &wait))
        return !gpu_wait_is_over(plans, &wait);
    return !wait.works; /* it has not come to its first wait */
}

/* Streams are let go only when the others know, and have left as well. */
static void look_at_broken(struct gpu_plans *plans, struct gpu_inflight *inflight)
{
    if (!gpu_leave(plans, inflight))
        return;
    gpu_kernel_stop(plans);
    gpu_wait_let_go(plans);
}

static void look(struct gpu_plans *plans)
{
    struct gpu_inflight *inflight = oldest(plans);

    if (atomic_load_explicit(&plans->comm->broken, memory_order_acquire)) {
        look_at_broken(plans, inflight);
        return;
    }
    if (atomic_load_explicit(&plans->graphs, memory_order_acquire))
        gpu_graph_look_after(plans);
    if (inflight && inflight->timing)
        gpu_timing_look(plans, inflight);
    if (inflight && inflight->kernel)
        look_after_kernel(plans, inflight);
    else if (inflight)
        look_after(plans, inflight);
    else
        gpu_outside_if_idle(plans);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool all_ended(struct gpu_plans *plans)
{
    bool none;

    lock_take(&plans->inflights_lock);
    none = !plans->inflights;
    lock_give(&plans->inflights_lock);
    return none;
}

static double nap_time(struct gpu_plans *plans)
{
    bool graphs = atomic_load_explicit(&plans->graphs, memory_order_acquire);
    bool leaves = atomic_load_explicit(&plans->comm->broken, memory_order_acquire) &&
                  atomic_load_explicit(&plans->leaving, memory_order_relaxed) != GPU_LEFT;

    if (leaves || !all_ended(plans) || gpu_graph_waits(plans))
        return LOOK_CALLS;
    return graphs ? LOOK_GRAPHS : LOOK_IDLE;
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
        uint32_t heard = atomic_load_explicit(&plans->own->doorbell, memory_order_acquire);
        struct timespec time;

        look_once(plans);
        time = timespec_of(seconds(plans));
        syscall(SYS_futex, &plans->own->doorbell, FUTEX_WAIT, heard, &time, NULL, 0);
    }
    cuda_leave(&plans->gpu->device);
}

static void *watchdog(void *argument)
{
    gpu_look_until_closed(argument, look, nap_time);
    return NULL;
}

rondo_result gpu_watchdog_start(struct gpu_plans *plans)
{
    plans->unanswered = -1;
    errno = pthread_create(&plans->watchdog, NULL, watchdog, plans);
    if (errno)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "Cannot start the thread that looks after calls on "
                                "the device");
    plans->watching = true;
    gpu_judge_enlist(plans);
    return gpu_map_start(plans);
}

/* True if the watchdog has to stay for a call or a graph. A graph may go on with another call,
 * which nobody knows, so it has to be quiet for a while. */
static bool is_busy(struct gpu_plans *plans, double *seen)
{
    bool graphs = atomic_load_explicit(&plans->graphs, memory_order_acquire);
    bool broken = atomic_load_explicit(&plans->comm->broken, memory_order_acquire);
    bool leaves = atomic_load_explicit(&plans->leaving, memory_order_acquire) != GPU_LEFT;

    if (!all_ended(plans))
        return true;
    if (gpu_graph_waits(plans))
        *seen = clock_seconds();
    return graphs &&
           (broken ? leaves || clock_seconds() - *seen < PATIENCE_GRAPHS : gpu_graph_waits(plans));
}

bool gpu_watchdog_stop(struct gpu_plans *plans)
{
    double broken_since = 0, seen = clock_seconds();
    bool broken = false;

    if (!plans->watching)
        return true;
    while (is_busy(plans, &seen)) {
        broken = atomic_load_explicit(&plans->comm->broken, memory_order_acquire);
        if (broken && !broken_since)
            broken_since = clock_seconds();
        if (broken && clock_seconds() - broken_since > PATIENCE_LET_GO)
            break;
        ring(plans->own);
        doze_for(DOZE_PEER);
    }
    atomic_store_explicit(&plans->closing, true, memory_order_release);
    ring(plans->own);
    pthread_join(plans->watchdog, NULL);
    gpu_map_stop(plans);
    gpu_judge_delist(plans);
    /* A graph that was let go may still be on its way to the end. */
    return all_ended(plans) &&
           !(broken && atomic_load_explicit(&plans->graphs, memory_order_acquire));
}
