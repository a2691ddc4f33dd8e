/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - the public functions of rondo/p2p.h that open, break and close a rondo_p2p. */
#include "comm/p2p/p2p.h"

#include "base/cancel.h"
#include "base/fail.h"
#include "base/fork.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

void p2p_enter(rondo_p2p *p2p)
{
    atomic_fetch_add_explicit(&p2p->knocks, 1, memory_order_relaxed);
    lock_take(&p2p->lock);
    atomic_fetch_sub_explicit(&p2p->knocks, 1, memory_order_relaxed);
}

static void free_all(rondo_p2p *p2p)
{
    while (p2p->first) {
        struct unexpected *unexpected = p2p->first;

        p2p->first = unexpected->next;
        free(unexpected->payload);
        free(unexpected);
    }
    if (p2p->comm) {
        p2p->comm->recorder = p2p->recorder;
        p2p->comm->world.trace = p2p->trace;
        rondo_comm_close(p2p->comm);
    }
    free(p2p->routes);
    free(p2p->tasks);
    p2p->comm = NULL;
    p2p->routes = NULL;
    p2p->tasks = NULL;
}

void p2p_leave(rondo_p2p *p2p)
{
    bool last = --p2p->users == 0;

    lock_give(&p2p->lock);
    if (!last)
        return;
    pthread_cond_destroy(&p2p->posted);
    pthread_cond_destroy(&p2p->over);
    lock_done(&p2p->lock);
    free(p2p);
}

static rondo_result start(rondo_p2p *p2p)
{
    size_t size = (size_t)p2p->comm->size;
    sigset_t all, before;
    int error;

    /* `rondo ps` and traces would show the envelopes that are awaited as calls that hang. */
    p2p->recorder = p2p->comm->recorder;
    p2p->comm->recorder = NULL;
    p2p->trace = p2p->comm->world.trace;
    p2p->comm->world.trace = NULL;
    p2p->comm->may_part = true;
    p2p->routes = calloc(size, sizeof(*p2p->routes));
    p2p->tasks = calloc(2 * size, sizeof(*p2p->tasks));
    if (!p2p->routes || !p2p->tasks)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages between %zu ranks.",
                          size);
    for (int peer = 0; peer < p2p->comm->size; peer++) {
        p2p->routes[peer].last = &p2p->routes[peer].first;
        p2p_task_to(p2p, peer)->state = TASK_DONE;
        progress_await_envelope(p2p, peer);
    }
    batch_open(&p2p->batch, p2p->comm, p2p->tasks, 2 * (int)size);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&p2p->thread, NULL, progress_run, p2p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return RONDO_OK;
    turn_pass(&p2p->comm->turn);
    errno = error;
    return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot start the thread that moves messages");
}

rondo_result rondo_p2p_open(rondo_comm *comm, rondo_p2p **ret_p2p)
{
    CANCEL_LATER();
    rondo_p2p *p2p;
    rondo_result result;

    if (!comm || !ret_p2p)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_p2p_open: needs a communicator and a place for the rondo_p2p.");
    p2p = calloc(1, sizeof(*p2p));
    if (!p2p)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for messages between ranks.");
    lock_init(&p2p->lock, LOCK_P2P);
    lock_init_condition(&p2p->posted);
    lock_init_condition(&p2p->over);
    p2p->users = 1;
    p2p->home = fork_home();
    p2p->last = &p2p->first;
    result = rondo_comm_dup(comm, &p2p->comm);
    if (!result) {
        result = start(p2p);
        if (result)
            comm_break(p2p->comm, result, p2p->comm->rank);
    }
    if (result) {
        snprintf(p2p->sentence, sizeof(p2p->sentence), "%s", fail_sentence());
        free_all(p2p);
        rondo_fail(result, "%s", p2p->sentence);
        lock_take(&p2p->lock);
        p2p_leave(p2p);
        return comm_note_error(comm, result);
    }
    *ret_p2p = p2p;
    return RONDO_OK;
}

void rondo_p2p_close(rondo_p2p *p2p)
{
    CANCEL_LATER();

    if (!p2p)
        return;
    if (fork_is_foreign(p2p->home)) {
        fork_keep(p2p);
        return;
    }
    p2p_enter(p2p);
    p2p->closing = true;
    pthread_cond_signal(&p2p->posted);
    lock_give(&p2p->lock);
    pthread_join(p2p->thread, NULL);
    free_all(p2p);
    lock_take(&p2p->lock);
    p2p_leave(p2p);
}

rondo_result rondo_p2p_abort(rondo_p2p *p2p)
{
    CANCEL_LATER();
    rondo_result result;

    if (!p2p)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_abort: the rondo_p2p is NULL.");
    if (fork_is_foreign(p2p->home))
        return fork_refuse("rondo_p2p_abort", "rondo_p2p");
    result = rondo_comm_abort(p2p->comm);
    p2p_enter(p2p);
    pthread_cond_signal(&p2p->posted);
    lock_give(&p2p->lock);
    return result;
}

rondo_result rondo_p2p_set_timeout(rondo_p2p *p2p, double seconds)
{
    CANCEL_LATER();
    rondo_result result;

    if (!p2p)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_p2p_set_timeout: the rondo_p2p is NULL.");
    if (fork_is_foreign(p2p->home))
        return fork_refuse("rondo_p2p_set_timeout", "rondo_p2p");
    p2p_enter(p2p);
    result = rondo_comm_set_timeout(p2p->comm, seconds);
    p2p_restart_waits(p2p);
    lock_give(&p2p->lock);
    return result;
}
