/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.c - making a communicator, which has to wait for other ranks.
 *
 * Alone it is done by the calling thread; of a group, by a thread each, as they may be ranks that
 * wait for each other; where the client asked for a communicator that does not block, by a thread
 * that nobody waits for. The job holds what it works on, so the client may abort it at any time.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

struct worker {
    struct job job;
    pthread_t thread;
    bool started;
    ncclResult_t result;
};

void compat_job_discard(struct job *job)
{
    if (job->comm)
        *job->ret_comm = NULL;
    communicator_drop(job->comm); /* the client's share: it does not get it */
    communicator_drop(job->comm);
    communicator_drop(job->parent);
    free(job->ranks);
}

/* With `calls` there, the communicator for what comes of it later. */
static rondo_result open_control(ncclComm_t comm)
{
    const rondo_config config = compat_config_of_control(comm);
    rondo_result result;

    if (atomic_load_explicit(&comm->aborted, memory_order_acquire))
        rondo_comm_abort(comm->calls); /* the client has gone: peers that have joined shall know */
    result = rondo_comm_split(comm->calls, 0, comm->rank, &config, &comm->control);
    /* Release, pairs with the acquire in ncclCommAbort(). */
    if (!result)
        atomic_store_explicit(&comm->joined, true, memory_order_release);
    return result;
}

static void set_state(ncclComm_t comm, ncclResult_t state)
{
    /* Release, pairs with the acquire in communicator_check(). */
    if (comm)
        atomic_store_explicit(&comm->state, state, memory_order_release);
}

/*
 * `waited`: the client is in the call and gets the error, and no communicator. Else it has had one
 * since the call, and will ask it.
 */
static ncclResult_t finish(struct job *job, rondo_result made, bool waited)
{
    ncclComm_t comm = job->comm;
    /* Without a new one the client asks the old one what went wrong. */
    bool asks_parent = job->parent && (waited || !comm);
    ncclResult_t result = compat_result(asks_parent ? job->parent : comm, made);

    if (job->parent)
        atomic_fetch_sub_explicit(&job->parent->deriving, 1, memory_order_release);
    set_state(comm, result);
    if (!waited)
        set_state(job->parent, comm ? ncclSuccess : result);
    if (comm && result && waited) {
        *job->ret_comm = NULL;
        communicator_drop(comm);
    }
    communicator_drop(comm);
    communicator_drop(job->parent);
    free(job->ranks);
    return result;
}

static ncclResult_t run(struct job *job, bool waited)
{
    rondo_result result;

    if (job->parent)
        atomic_fetch_add_explicit(&job->parent->deriving, 1, memory_order_relaxed);
    result = job->run(job);
    if (!result && job->comm)
        result = open_control(job->comm);
    return finish(job, result, waited);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    worker->result = run(&worker->job, true);
    return NULL;
}

static void *work_alone(void *argument)
{
    struct job *job = argument;

    run(job, false);
    free(job);
    return NULL;
}

static bool waits(const struct job *job)
{
    return job->comm ? job->comm->wishes.blocking : job->parent->wishes.blocking;
}

static ncclResult_t start_alone(struct job *job)
{
    struct job *copy = malloc(sizeof(*copy));
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    if (!copy) {
        compat_job_discard(job);
        return compat_fail(NULL, ncclSystemError, "Out of memory for making a communicator.");
    }
    *copy = *job;
    set_state(job->parent, ncclInProgress);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, work_alone, copy);
    pthread_attr_destroy(&attributes);
    if (!error)
        return ncclInProgress;
    set_state(job->parent, ncclSuccess);
    free(copy);
    compat_job_discard(job);
    return compat_fail(NULL, ncclSystemError, "Cannot start a thread for making a communicator.");
}

static bool start(struct worker *worker, const struct job *job)
{
    worker->job = *job;
    worker->started = !pthread_create(&worker->thread, NULL, work, worker);
    if (!worker->started) {
        compat_job_discard(&worker->job);
        worker->result =
            compat_fail(NULL, ncclSystemError, "Cannot start a thread for making a communicator.");
    }
    return worker->started;
}

ncclResult_t compat_job_run_all(struct job *jobs, int count)
{
    struct worker *workers = calloc((size_t)count, sizeof(*workers));
    ncclResult_t result = ncclSuccess;

    for (int i = 0; i < count && !workers; i++)
        compat_job_discard(&jobs[i]);
    if (!workers)
        return compat_fail(NULL, ncclSystemError, "Out of memory for %d communicators.", count);
    for (int i = 0; i < count; i++)
        if (waits(&jobs[i]))
            start(&workers[i], &jobs[i]);
        else
            workers[i].result = start_alone(&jobs[i]);
    for (int i = 0; i < count; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        if (!result || (result == ncclInProgress && workers[i].result))
            result = workers[i].result;
    }
    free(workers);
    return result;
}

ncclResult_t compat_job_submit(const struct job *job)
{
    struct job own = *job;

    if (compat_in_group())
        return compat_group_add_job(job);
    return waits(job) ? run(&own, true) : start_alone(&own);
}
