/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alone.c - the plans of broken communicators that were closed before streams came to all of them.
 *
 * What a stream may still come to, be it a call that was queued long ago or a graph that is
 * launched at any time, stays where it is for as long as the process lives: flags, tables, the
 * arenas of peers. And peers keep their arenas for it, as long as this process lives
 * (comm/failure/lease.c). A stream that comes there must not wait for ever for a peer that has left
 * the call: kernels were told to end at once, and from operations of streams a thread of the
 * process takes the waits. It ends when no graph is left, and no call.
 */
#include "comm/gpu/plan.h"

#include "base/caller/times.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "transport/memory/heap.h"
#include "transport/memory/process.h"

#include <pthread.h>

static struct lock list_lock = LOCK_AT(LOCK_GPU_ABANDONED);
FORK_RENEWS({.lock = &list_lock});
static struct gpu_plans *list;
static bool looks; /* a thread does, or is about to */

/* True if a stream may come to something of these plans, or to a part of a call that the driver
 * took; such a call does not end. */
static bool is_awaited(const struct gpu_plans *plans)
{
    uint32_t ended = atomic_load_explicit(&plans->progress->ended, memory_order_acquire);

    if (atomic_load_explicit(&plans->graphs, memory_order_relaxed))
        return true;
    for (const struct gpu_inflight *at = plans->inflights; at; at = at->next)
        if ((int32_t)(ended - at->number) < 0)
            return true;
    return false;
}

/* Returns how long to sleep until the next look, 0: nothing is left to be looked at. */
static double look(void)
{
    double seconds = 0;

    lock_take(&list_lock);
    for (struct gpu_plans *plans = list; plans; plans = plans->next) {
        struct gpu_wait wait;

        if (gpu_wait_read(plans, &wait))
            seconds = LOOK_CALLS;
        else if (!seconds && is_awaited(plans))
            seconds = LOOK_IDLE;
        gpu_wait_let_go(plans);
    }
    looks = seconds > 0;
    lock_give(&list_lock);
    return seconds;
}

static void *look_on(void *unused)
{
    double seconds;

    while ((seconds = look()))
        doze_for(seconds);
    return unused;
}

/* With the lock held. */
static void start_looking(void)
{
    pthread_t thread;

    if (looks)
        return;
    looks = !pthread_create(&thread, NULL, look_on, NULL);
    if (looks)
        pthread_detach(thread);
    else
        log_warn("there is no thread for streams that come to calls of a broken communicator after "
                 "it was closed: they may wait for ever");
}

void gpu_leave_alone(struct gpu_plans *plans)
{
    rondo_comm *comm = plans->comm;
    struct heap_handle endpoint;
    struct process *process;

    (void)heap_enter(&endpoint);
    for (int rank = 0; rank < comm->size; rank++)
        (void)process_attach(&comm->endpoints[rank].heap, &process);
    plans->gpu->arena = NULL;
    gpu_kernel_stop(plans);
    /* Neither its calls nor launches of its graphs wait for a peer any more, so what waits for the
     * device ends. */
    if (atomic_load_explicit(&plans->graphs, memory_order_relaxed))
        cuda_count_inflights(-1);
    for (const struct gpu_inflight *at = plans->inflights; at; at = at->next)
        cuda_count_inflights(-1);
    lock_take(&list_lock);
    plans->next = list;
    list = plans;
    start_looking();
    lock_give(&list_lock);
    log_info("what streams of a broken communicator may still use stays where it is");
}
