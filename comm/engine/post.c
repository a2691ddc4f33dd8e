/* SPDX-License-Identifier: BSD-3-Clause */
/* post.c - see post.h, and the public functions in rondo/bindings.h. */
#include "comm/engine/post.h"

#include "base/caller/times.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "comm/engine/call.h"
#include "comm/engine/life.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/leave.h"
#include "comm/failure/network.h"

#include <stdlib.h>
#include <string.h>

/* ---- Taking and giving ----------------------------------------------------------------------- */

struct rondo_request *post_take(rondo_comm *comm)
{
    struct rondo_request *request;

    if (!atomic_load_explicit(&comm->posted, memory_order_relaxed))
        return NULL;
    /* Acquire, pairs with the release in hang_up(): what others did with it is seen. */
    request = atomic_exchange_explicit(&comm->posted, NULL, memory_order_acquire);
    if (request)
        request->task.execution.our_mode = false; /* of this thread it is not known */
    return request;
}

static void hang_up(struct rondo_request *request)
{
    atomic_store_explicit(&request->batch.comm->posted, request, memory_order_release);
}

static void drop(struct rondo_request *request)
{
    if (atomic_fetch_sub_explicit(&request->users, 1, memory_order_acq_rel) != 1)
        return;
    free(request->sentence);
    free(request);
}

void post_give(struct rondo_request *request)
{
    /* This thread has found the error; another one may end the batch. */
    if (request->batch.result && !request->sentence)
        request->sentence = strdup(fail_sentence());
    if (!request->batch.done) {
        hang_up(request);
        return;
    }
    /* The turn is over, so the communicator may be closed by now. */
    request->result = request->batch.result;
    /* Release, pairs with the acquire in outcome(). */
    atomic_store_explicit(&request->over, true, memory_order_release);
    drop(request);
}

/* Run it to its end; its error is for who waits for it. */
static void finish(struct rondo_request *request)
{
    (void)run_batches(&request->batch, 1);
    post_give(request);
}

void post_finish_or_doze(rondo_comm *comm)
{
    struct rondo_request *request = post_take(comm);

    if (request)
        finish(request);
    else
        doze_for(DOZE_OWN);
}

struct use {
    const void *memory;
    size_t bytes;
    struct rondo_request *found;
};

static bool find_use(rondo_comm *comm, void *context)
{
    struct use *use = context;
    struct rondo_request *request = post_take(comm);
    const struct task *task = request ? &request->task : NULL;

    if (!request)
        return false;
    use->found = request;
    if (call_uses(comm->size, comm->rank, &task->key, task->input, task->output, use->memory,
                  use->bytes))
        return true;
    hang_up(request);
    return false;
}

void posts_let_go(const void *memory, size_t bytes)
{
    struct use use = {.memory = memory, .bytes = bytes};

    /* Its communicator is not closed before its turn is over. */
    while (leave_any(find_use, &use))
        finish(use.found);
}

/* ---- Posting --------------------------------------------------------------------------------- */

/* Take the turn; false: calls are under way that are not over when this thread has advanced one. */
static bool take_turn(rondo_comm *comm, unsigned *ret_ticket)
{
    struct rondo_request *before;

    if (turn_take_idle(&comm->turn, ret_ticket))
        return true;
    before = post_take(comm);
    if (!before)
        return false;
    (void)batch_advance(&before->batch, NULL);
    post_give(before);
    return turn_take_idle(&comm->turn, ret_ticket);
}

/* With the turn: true if the call was begun. */
static bool begin(struct rondo_request *request, unsigned ticket)
{
    rondo_comm *comm = request->batch.comm;
    struct task *task = &request->task;

    /* What can't be prepared is found out again by who makes the call in another way. */
    if (task_prepare(comm, task) || !exec_sends_first(&task->execution))
        return false;
    batch_open_at(&request->batch, comm, task, 1, ticket);
    (void)task_begin(comm, task); /* this thread refuses none */
    task_record(comm, task);
    (void)batch_advance(&request->batch, NULL);
    return true;
}

/* True if this thread alone moves the call's messages, without a network, and what it leads to is
 * this rank's own. */
static bool may_post(const rondo_comm *comm, const struct task *task)
{
    return comm_backend(comm) == &thread_backend && !networks_any(comm) && !comm->settle &&
           !task->made.handle;
}

static rondo_result post(const rondo_call *call, rondo_request **ret_request)
{
    rondo_comm *comm = call->comm;
    struct rondo_request *request = malloc(sizeof(*request));
    rondo_result result;
    unsigned ticket;

    if (!request)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a posted call.");
    request->batch.comm = comm;
    request->home = comm->home;
    request->sentence = NULL;
    atomic_init(&request->looked, 0);
    atomic_init(&request->over, false);
    atomic_init(&request->users, 2);
    result = call_check(call, &request->task);
    if (result || !may_post(comm, &request->task) || !take_turn(comm, &ticket)) {
        free(request);
        return result ? result : RONDO_IN_PROGRESS;
    }
    if (!begin(request, ticket)) {
        turn_pass(&comm->turn);
        free(request);
        return RONDO_IN_PROGRESS;
    }
    if (request->batch.done) {
        result = request->batch.result;
        free(request);
        return result;
    }
    *ret_request = request;
    post_give(request);
    return RONDO_OK;
}

rondo_result rondo_collective_post(const rondo_call *call, rondo_request **ret_request)
{
    CANCEL_LATER();
    rondo_result result;

    if (!call || call->struct_size != sizeof(*call) || !ret_request)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_collective_post: needs a call, whose struct_size is "
                          "sizeof(rondo_call), and a place for the request.");
    *ret_request = NULL;
    if (!call->comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_collective_post: the communicator is NULL.");
    result = comm_check(call->comm);
    if (!result && call->stream)
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "rondo_collective_post: a call on a stream is queued, not posted.");
    if (!result && group_is_open())
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_collective_post: not inside of a group.");
    if (!result)
        result = post(call, ret_request);
    return result > RONDO_IN_PROGRESS ? comm_note_error(call->comm, result) : result;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static rondo_result outcome(const struct rondo_request *request)
{
    if (!request->result)
        return RONDO_OK;
    return rondo_fail(request->result, "%s",
                      request->sentence ? request->sentence : rondo_result_string(request->result));
}

static bool is_over(const struct rondo_request *request)
{
    return atomic_load_explicit(&request->over, memory_order_acquire);
}

/* One round of who has taken the request, or a pause of who has not. */
static void wait_once(struct rondo_request *request, struct waiter *waiter, bool pauses)
{
    struct rondo_request *taken = post_take(request->batch.comm);

    if (!taken) {
        if (pauses)
            (void)waiter_pause(waiter);
        return;
    }
    if (pauses)
        (void)batches_round(&taken->batch, 1, waiter, NULL);
    else
        (void)batch_advance(&taken->batch, NULL);
    post_give(taken);
}

/* Looks after the peers of a request in short waits, none of which is long enough for that. */
static void look_after(struct rondo_request *request)
{
    double now = clock_seconds();
    double looked = atomic_load_explicit(&request->looked, memory_order_relaxed);
    struct rondo_request *taken;

    if (looked > 0 && now - looked < LOOK_PEERS * request->batch.comm->tuning.wait.ranks_per_core)
        return;
    atomic_store_explicit(&request->looked, now, memory_order_relaxed);
    if (looked == 0) /* it has not waited yet */
        return;
    taken = post_take(request->batch.comm);
    if (!taken)
        return;
    (void)batch_look_after(&taken->batch, now);
    post_give(taken);
}

rondo_result rondo_request_wait(rondo_request *request, double seconds)
{
    CANCEL_LATER();
    struct waiter waiter;
    double began;

    if (!request)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_request_wait: the request is NULL.");
    if (fork_is_foreign(request->home))
        return fork_refuse("rondo_request_wait", "request");
    if (is_over(request))
        return outcome(request);
    began = seconds > 0 ? clock_seconds() : 0;
    waiter_init(&waiter, &request->batch.comm->tuning.wait);
    do
        wait_once(request, &waiter, !(seconds == 0));
    while (!is_over(request) &&
           (seconds < 0 || (seconds > 0 && clock_seconds() - began < seconds)));
    if (!is_over(request))
        look_after(request);
    return is_over(request) ? outcome(request) : RONDO_IN_PROGRESS;
}

void rondo_request_close(rondo_request *request)
{
    CANCEL_LATER();

    if (request && fork_is_foreign(request->home))
        fork_keep(request);
    else if (request)
        drop(request);
}
