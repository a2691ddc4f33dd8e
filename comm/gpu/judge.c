/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - how calls that run as plans on the device have ended, told to their streams.
 *
 * A stream comes to the end of a call also when it was let go, or when a peer's stream was and the
 * peer's message is a lie. But a rank lets its streams go only after its status page says that it
 * has failed. So who sees first that a call has ended, and then that no status page tells of a
 * failure, knows that the call is right; if one does, the call is taken for spoilt. The watchdog
 * looks about once a millisecond while calls are on their way, and a stream's synchronize looks
 * before it returns.
 */
#include "comm/failure/error.h"
#include "comm/gpu/plan.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "comm/failure/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lock list_lock = LOCK_AT(LOCK_GPU_JUDGED);
FORK_RENEWS({.lock = &list_lock});
static struct gpu_plans *list;

void gpu_judge_enlist(struct gpu_plans *plans)
{
    lock_take(&list_lock);
    plans->next_watched = list;
    list = plans;
    lock_give(&list_lock);
}

/* ---- The errors of a stream ------------------------------------------------------------------ */

void gpu_errors_drop(struct gpu_errors *errors)
{
    bool last;

    lock_take(&errors->lock);
    last = --errors->users == 0;
    lock_give(&errors->lock);
    if (!last)
        return;
    lock_done(&errors->lock);
    free(errors);
}

struct gpu_errors *gpu_errors_hold(struct gpu_errors *errors)
{
    lock_take(&errors->lock);
    errors->users++;
    lock_give(&errors->lock);
    return errors;
}

void gpu_errors_note(struct gpu_errors *errors, rondo_result result)
{
    lock_take(&errors->lock);
    if (!errors->result) {
        errors->result = result;
        memcpy(errors->sentence, fail_sentence(), strlen(fail_sentence()) + 1);
    }
    lock_give(&errors->lock);
}

/* ---- One communicator ------------------------------------------------------------------------ */

/* The lowest of those that have left for good, -1: none. */
static int who_left(const struct gpu_plans *plans)
{
    for (int rank = 0; rank < plans->comm->size; rank++)
        if (atomic_load_explicit(&gpu_mailbox(plans->own, rank, 0)->left, memory_order_acquire))
            return rank;
    return -1;
}

/* A peer lies, or this rank does not know its memory. Returns the peer; -1: any. */
static int say_not_shown(const struct gpu_plans *plans, uint32_t error)
{
    int peer = error & CUDA_CALL_BAD_PEER ? (int)(error & ~CUDA_CALL_BAD_PEER) : -1;

    if (peer >= 0)
        rondo_fail(RONDO_ERROR_PEER,
                   "Rank %d pointed rank %d to device memory that it has not shown.", peer,
                   plans->comm->rank);
    else
        rondo_fail(RONDO_ERROR_PEER,
                   "A peer of rank %d pointed to device memory that it has not shown (operand %u).",
                   plans->comm->rank, error - CUDA_CALL_BAD_OPERAND);
    return peer;
}

/* A kernel was told of memory that is not there: its owner has taken it back, or lies. */
static void look_at_errors(struct gpu_plans *plans)
{
    uint32_t error = atomic_load_explicit(&plans->progress->error, memory_order_acquire);
    int culprit = error ? who_left(plans) : -1;

    if (culprit >= 0)
        health_adopt(plans->comm); /* its status page says why */
    if (!error || atomic_load_explicit(&plans->comm->broken, memory_order_acquire))
        return;
    if (culprit >= 0)
        rondo_fail(RONDO_ERROR_PEER,
                   "Rank %d has left a call that rank %d is in, and taken its device memory back.",
                   culprit, plans->comm->rank);
    else
        culprit = say_not_shown(plans, error);
    comm_break(plans->comm, RONDO_ERROR_PEER, culprit);
}

/* Why it is broken, as this stream's caller is to be told. */
static rondo_result say_broken(struct gpu_plans *plans)
{
    char sentence[FAIL_SENTENCE_MAX];
    rondo_result result = comm_check(plans->comm);

    if (!result || plans->unanswered < 0)
        return result;
    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    return rondo_fail(result,
                      "%.*s If the device of rank %d works at a kernel that had begun by then, it "
                      "may still touch device memory of the call, which should not be used for "
                      "anything else before that rank has ended.",
                      FAIL_SENTENCE_MAX * 3 / 4, sentence, plans->unanswered);
}

static void settle(struct gpu_errors *errors, rondo_result result)
{
    if (result)
        gpu_errors_note(errors, result);
    lock_take(&errors->lock);
    errors->under_way--;
    lock_give(&errors->lock);
    gpu_errors_drop(errors);
}

/* True if the call's kernel has ended because of a message of another call, which the watchdog has
 * still to say. */
static bool is_unsaid(const struct gpu_plans *plans, const struct gpu_inflight *inflight)
{
    return inflight->kernel && gpu_kernel_failed(plans);
}

bool gpu_judge(struct gpu_plans *plans)
{
    uint32_t ended = atomic_load_explicit(&plans->progress->ended, memory_order_acquire);
    const struct status *own = plans->comm->status_pages[plans->comm->rank];
    rondo_result result;
    bool judged = true;

    look_at_errors(plans);
    health_adopt(plans->comm);
    result = say_broken(plans);
    if (result && !atomic_load_explicit(&own->failed, memory_order_acquire))
        return false; /* another thread is about to write why */
    lock_take(&plans->inflights_lock);
    for (struct gpu_inflight *inflight = plans->inflights;
         inflight && judged && (inflight->abandoned || (int32_t)(ended - inflight->number) >= 0);
         inflight = inflight->next) {
        judged = result || !is_unsaid(plans, inflight);
        if (!judged || !inflight->errors)
            continue;
        settle(inflight->errors, result);
        inflight->errors = NULL;
    }
    lock_give(&plans->inflights_lock);
    return judged;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* A stream from which a graph got calls; which launches of it have ended nobody knows. */
struct gpu_capture {
    struct gpu_capture *next;
    struct gpu_errors *errors;
    bool told; /* that the communicator is broken */
};

rondo_result gpu_judge_capture(struct gpu_plans *plans, struct gpu_errors *errors)
{
    struct gpu_capture *capture;
    rondo_result result = RONDO_OK;

    lock_take(&plans->inflights_lock);
    for (capture = plans->captures; capture && capture->errors != errors; capture = capture->next)
        ;
    if (!capture) {
        capture = calloc(1, sizeof(*capture));
        if (capture) {
            capture->errors = gpu_errors_hold(errors);
            capture->next = plans->captures;
            plans->captures = capture;
        } else {
            result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a call in a CUDA graph.");
        }
    }
    lock_give(&plans->inflights_lock);
    return result;
}

/* Nobody knows which launches came to their end before the failure, and later ones do nothing: as
 * long as the communicator is there, its graphs are taken for spoilt. */
static void judge_captures(struct gpu_plans *plans, struct gpu_errors *errors)
{
    rondo_result result;

    lock_take(&plans->inflights_lock);
    for (struct gpu_capture *capture = plans->captures; capture; capture = capture->next)
        if (capture->errors == errors && (result = say_broken(plans))) {
            gpu_errors_note(errors, result);
            capture->told = true;
        }
    lock_give(&plans->inflights_lock);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static bool judge_all(struct gpu_errors *errors, bool calls)
{
    bool judged = true;

    lock_take(&list_lock);
    for (struct gpu_plans *plans = list; plans; plans = plans->next_watched) {
        bool graphs = atomic_load_explicit(&plans->graphs, memory_order_acquire);

        if (!calls && !graphs)
            continue;
        judged &= gpu_judge(plans);
        if (graphs)
            judge_captures(plans, errors);
    }
    lock_give(&list_lock);
    return judged;
}

static bool has_calls(struct gpu_errors *errors)
{
    bool calls;

    lock_take(&errors->lock);
    calls = errors->under_way != 0;
    lock_give(&errors->lock);
    return calls;
}

/* A call of which nobody knows how it ended is none that went well. */
void gpu_judge_stream(struct gpu_errors *errors)
{
    double began = clock_seconds();
    bool calls = has_calls(errors), judged;

    while (!(judged = judge_all(errors, calls)) && clock_seconds() - began < PATIENCE_JUDGE)
        doze_for(DOZE_PEER);
    if (!judged && has_calls(errors))
        gpu_errors_note(errors,
                        rondo_fail(RONDO_ERROR_SYSTEM,
                                   "A call has ended on its CUDA stream, and the thread that looks "
                                   "after calls has not said in %.0f s how: the process may get "
                                   "too little of the machine.",
                                   PATIENCE_JUDGE));
}

/* Streams of graphs hear of it that have not yet, or have still to come to the end of a launch. */
static void tell_captures(struct gpu_plans *plans)
{
    bool launched = gpu_sequence_is_launched(&plans->gpu->sequence);
    rondo_result result = say_broken(plans);

    while (plans->captures) {
        struct gpu_capture *capture = plans->captures;

        plans->captures = capture->next;
        if (result && (launched || !capture->told))
            gpu_errors_note(capture->errors, result);
        gpu_errors_drop(capture->errors);
        free(capture);
    }
}

/* Calls that are stuck for ever have failed. */
void gpu_judge_delist(struct gpu_plans *plans)
{
    struct gpu_plans **link = &list;

    lock_take(&list_lock);
    while (*link && *link != plans)
        link = &(*link)->next_watched;
    if (*link)
        *link = plans->next_watched;
    lock_give(&list_lock);
    for (struct gpu_inflight *inflight = plans->inflights; inflight; inflight = inflight->next) {
        if (inflight->errors)
            settle(inflight->errors, say_broken(plans));
        inflight->errors = NULL;
    }
    tell_captures(plans);
}

void gpu_query(struct gpu *gpu)
{
    struct gpu_plans *plans = gpu ? gpu->plans : NULL;
    double began = clock_seconds();
    bool over = !plans || !plans->watching;

    while (!over && clock_seconds() - began < PATIENCE_JUDGE) {
        bool judged = gpu_judge(plans), any;

        lock_take(&plans->inflights_lock);
        any = plans->inflights != NULL;
        lock_give(&plans->inflights_lock);
        over =
            judged && (!any || !atomic_load_explicit(&plans->comm->broken, memory_order_acquire) ||
                       atomic_load_explicit(&plans->leaving, memory_order_acquire) == GPU_LEFT);
        if (!over)
            doze_for(DOZE_PEER);
    }
}
