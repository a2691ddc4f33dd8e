/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.c - leaving a failed call: who is still inside, for how long, and what to do then. */
#include "comm/failure/leave.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/mismatch.h"
#include "comm/failure/network.h"
#include "comm/state/address.h"
#include "comm/state/registration.h"
#include "transport/memory/heap.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>

/* ---- All communicators of this process ------------------------------------------------------- */

static struct lock list_lock = LOCK_AT(LOCK_COMM_LIST);
FORK_RENEWS({.lock = &list_lock});
static rondo_comm *list;

rondo_result leave_enlist(rondo_comm *comm)
{
    comm->lease = leave_lease(comm);
    if (!comm->lease)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator of %d ranks.",
                          comm->size);
    lock_take(&list_lock);
    comm->next = list;
    list = comm;
    lock_give(&list_lock);
    return RONDO_OK;
}

void leave_delist(rondo_comm *comm)
{
    rondo_comm **link = &list;

    lock_take(&list_lock);
    while (*link && *link != comm)
        link = &(*link)->next;
    if (*link)
        *link = comm->next;
    lock_give(&list_lock);
}

bool leave_any(bool (*function)(rondo_comm *comm, void *context), void *context)
{
    bool any = false;

    lock_take(&list_lock);
    for (rondo_comm *comm = list; comm && !any; comm = comm->next)
        any = !fork_is_foreign(comm->home) && function(comm, context);
    lock_give(&list_lock);
    return any;
}

void leave_pass(void)
{
    lock_take(&list_lock);
    lock_give(&list_lock);
}

/* ---- The alarm ------------------------------------------------------------------------------- */

void leave_ring(const rondo_comm *comm)
{
    for (int rank = 0; comm->alarms && rank < comm->size; rank++)
        if (comm->alarms[rank])
            /* Release, pairs with the acquire in exec.c: who hears it sees the status page. */
            atomic_store_explicit(&comm->alarms[rank]->rung, 1, memory_order_release);
}

/* True if the status page says that the communicator is broken: who has broken it has still to ring
 * the alarm. */
static bool has_told(const rondo_comm *comm)
{
    return atomic_load_explicit(&comm->status_pages[comm->rank]->failed, memory_order_acquire);
}

bool leave_spoils(const rondo_comm *comm)
{
    if (atomic_load_explicit(&comm->broken, memory_order_acquire))
        return true;
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && comm->alarms[rank] &&
            atomic_load_explicit(&comm->status_pages[rank]->id, memory_order_acquire) == comm->id &&
            status_spoils(comm->status_pages[rank], comm->calls))
            return true;
    return false;
}

bool leave_lost(const rondo_comm *comm, int rank)
{
    const struct status *status = comm->status_pages[rank];

    return atomic_load_explicit(&comm->broken, memory_order_acquire) ||
           (comm->alarms[rank] &&
            atomic_load_explicit(&status->id, memory_order_acquire) == comm->id &&
            atomic_load_explicit(&status->failed, memory_order_acquire));
}

/* ---- The end of a call ----------------------------------------------------------------------- */

rondo_result leave_too(rondo_comm *comm)
{
    rondo_result result = comm_check(comm); /* another thread of this rank may have rung */

    if (!result)
        result = health_adopt(comm);
    if (result)
        return result;
    rondo_fail(RONDO_ERROR_PEER, "A rank has left the call that rank %d is in.", comm->rank);
    return comm_break(comm, RONDO_ERROR_PEER, -1);
}

rondo_result leave_warily(rondo_comm *comm, struct task *task)
{
    rondo_result result = task->choice->deaf_channels ? mismatch_unheard(comm, task) : RONDO_OK;

    if (result)
        return result;
    if (task->execution.plan->address_signals)
        exposure_close(comm_exposure(comm, task->key.collective, task->key.root));
    if (collective_is_pair(task->key.collective))
        return RONDO_OK; /* what came from a rank was sent, or could be read, before it failed */
    if (leave_hears(comm) && leave_spoils(comm))
        return leave_too(comm);
    status_end(comm->status_pages[comm->rank], comm->calls);
    return RONDO_OK;
}

/* ---- Who is inside --------------------------------------------------------------------------- */

enum whereabouts { NOBODY, ANOTHER_PROCESS, THIS_PROCESS };

static bool is_inside(const rondo_comm *comm, int rank)
{
    const struct status *status = comm->status_pages[rank];

    /* Acquire, pairs with the release in go_outside(): what it stored before is there. */
    return atomic_load_explicit(&status->inside, memory_order_acquire) &&
           atomic_load_explicit(&status->id, memory_order_acquire) == comm->id &&
           !atomic_load_explicit(&status->closed, memory_order_acquire) &&
           process_alive(comm->processes[rank]);
}

/* True if peers have been told where buffers of this call are. */
static bool is_exposed(const struct task *task)
{
    const struct execution *x = &task->execution;

    return task->state == TASK_RUNNING && x->plan->address_signals && !x->unreachable &&
           !task->backend->on_device;
}

/* True if this rank has been told where buffers of the batch are: of a message only its receiver
 * has. */
static bool may_touch(const struct batch *batch, int rank)
{
    for (int i = 0; i < batch->count; i++) {
        const struct task *task = &batch->tasks[i];

        if (is_exposed(task) &&
            (!collective_is_pair(task->key.collective) || task->key.root == rank))
            return true;
    }
    return false;
}

static enum whereabouts look_inside(const struct batch *batch, int *ret_rank)
{
    const rondo_comm *comm = batch->comm;
    enum whereabouts found = NOBODY;

    for (int rank = 0; rank < comm->size; rank++) {
        enum whereabouts where;

        if (rank == comm->rank || !comm->alarms[rank] || !may_touch(batch, rank) ||
            !is_inside(comm, rank))
            continue;
        where = process_is_own(comm->processes[rank]) ? THIS_PROCESS : ANOTHER_PROCESS;
        if (where > found) {
            found = where;
            *ret_rank = rank;
        }
    }
    return found;
}

/* ---- Taking memory back ---------------------------------------------------------------------- */

/* Memory in [begin, end) was taken back from peers: it is registered no more. */
static void forget_registration(rondo_comm *comm, const char *begin, const char *end)
{
    lock_take(&comm->registrations_lock);
    for (rondo_registration *at = comm->registrations; at; at = at->next)
        if ((const char *)at->memory >= begin && (const char *)at->memory < end)
            at->memory = NULL;
    lock_give(&comm->registrations_lock);
}

/* True if peers of it would write what nobody reads, or read what nobody wrote. */
static bool is_hurt(const struct exposure *exposure, const char *begin, const char *end,
                    bool emptied)
{
    return exposed_touches(&exposure->written, begin, end) ||
           (emptied && exposed_maps(&exposure->read, begin, end));
}

static bool any_is_hurt(const rondo_comm *comm, const char *begin, const char *end, bool emptied)
{
    for (int i = 0; i <= comm->size; i++)
        if (is_hurt(&comm->exposures[i], begin, end, emptied))
            return true;
    return false;
}

/* Another thread may be about to break it for another reason, and tell its peers of that. */
static void break_now(rondo_comm *comm)
{
    comm_break(comm, RONDO_ERROR_PEER, comm->rank);
    while (!has_told(comm))
        sched_yield();
    leave_ring(comm);
}

void leave_warn(void *context, const char *begin, const char *end, bool emptied)
{
    const rondo_comm *failed = context;

    lock_take(&list_lock);
    for (rondo_comm *comm = list; comm; comm = comm->next) {
        if (fork_is_foreign(comm->home))
            continue; /* its peers are the parent's */
        forget_registration(comm, begin, end);
        if (comm == failed || !any_is_hurt(comm, begin, end, emptied))
            continue;
        rondo_fail(RONDO_ERROR_PEER,
                   "A buffer of rank %d lies on pages, or in a registered range, that were taken "
                   "back from peers of another communicator, in which a call failed. Buffers of "
                   "calls that run at the same time should share neither.",
                   comm->rank);
        break_now(comm);
    }
    lock_give(&list_lock);
}

/* Withdraw the caller's memory. Staging memory of a device is not the caller's, and a broken
 * communicator does not stage again. */
static rondo_result withdraw(rondo_comm *comm, const void *memory, size_t bytes)
{
    if (comm_backend(comm)->stages && comm_backend(comm)->stages(comm, memory))
        return RONDO_OK;
    return heap_withdraw(&(struct heap_withdrawal){.memory = memory,
                                                   .bytes = bytes,
                                                   .lease = leave_lease(comm),
                                                   .warn = leave_warn,
                                                   .context = comm});
}

static rondo_result withdraw_task(rondo_comm *comm, const struct task *task)
{
    const struct execution *x = &task->execution;
    const struct address_lengths bytes = address_lengths(x);
    rondo_result result = RONDO_OK;

    if (x->own.input_kind == ADDRESS_HEAP)
        result = withdraw(comm, task->input, bytes.input);
    if (!result && x->own.output_kind == ADDRESS_HEAP && task->output != task->input)
        result = withdraw(comm, task->output, bytes.output);
    return result;
}

/* The sentence that the call returns is kept. */
static bool withdraw_all(struct batch *batch, int rank)
{
    char sentence[FAIL_SENTENCE_MAX];
    rondo_result result = RONDO_OK;

    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    log_info("rank %d does not answer, and may be stopped while it touches buffers of a call that "
             "has failed: their pages are exchanged",
             rank);
    for (int i = 0; i < batch->count && !result; i++)
        if (is_exposed(&batch->tasks[i]))
            result = withdraw_task(batch->comm, &batch->tasks[i]);
    if (result) {
        log_warn("%s; rank %d is waited for instead", fail_sentence(), rank);
        batch->leaving = INFINITY;
    }
    rondo_fail(batch->result, "%s", sentence);
    return !result;
}

/* ---- Leaving --------------------------------------------------------------------------------- */

/* False: another thread has broken the communicator, and has yet to tell its peers. */
static bool begin_to_leave(struct batch *batch)
{
    rondo_comm *comm = batch->comm;
    bool broken = atomic_load_explicit(&comm->broken, memory_order_acquire);

    if (broken && !has_told(comm)) {
        batch->leaving = -1;
        return false;
    }
    batch->leaving = clock_seconds();
    networks_let_go(comm);
    /* Release, pairs with the acquire in is_inside(): nothing of peers is touched from here on. */
    atomic_store_explicit(&comm->status_pages[comm->rank]->inside, 0, memory_order_release);
    if (broken)
        leave_ring(comm);
    /* Pairs with the fence in step_enter(). */
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

void leave_unexposed(const rondo_comm *comm)
{
    for (int i = 0; i <= comm->size; i++)
        exposure_close(&comm->exposures[i]);
}

bool leave_done(struct batch *batch)
{
    int rank = batch->comm->rank;

    if (batch->leaving <= 0 && !begin_to_leave(batch))
        return false;
    switch (look_inside(batch, &rank)) {
    case NOBODY:
        return true;
    case ANOTHER_PROCESS:
        return clock_seconds() - batch->leaving > PATIENCE_INSIDE && withdraw_all(batch, rank);
    default:
        return false;
    }
}
