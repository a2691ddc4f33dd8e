/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.c - making a communicator, which has to wait for other ranks.
 *
 * Alone it is done by the calling thread; of a group, by a thread each, as they may be ranks that
 * wait for each other, but for those of one parent, which come one after another, as on all ranks;
 * where the client asked for a communicator that does not block, by a thread in the background. The
 * job holds what it works on, so the client may abort it at any time. Who destroys a communicator
 * waits for the ends of threads that need nothing of other ranks any more: so when the client
 * unloads the library, or ends, none of them is in it.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

struct worker {
    struct job job;
    struct worker *next; /* a later job of the same parent */
    bool follows;        /* it is such a one */
    pthread_t thread;
    bool started;
    ncclResult_t result;
};

enum { WAITS, ENDS, LEFT };

struct background {
    struct background *next; /* of the same communicator */
    struct job job;
    pthread_t thread;
    atomic_int phase; /* WAITS: for other ranks; LEFT: nobody waits for it, it frees itself */
};

void compat_job_discard(struct job *job)
{
    if (job->comm) {
        *job->ret_comm = NULL; /* the client does not get it */
        communicator_release(job->comm);
    }
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
        communicator_release(comm);
    }
    communicator_drop(comm);
    communicator_drop(job->parent);
    free(job->ranks);
    return result;
}

static rondo_result make(struct job *job)
{
    rondo_result result;

    if (job->parent) {
        atomic_fetch_add_explicit(&job->parent->deriving, 1, memory_order_relaxed);
        /* Pairs with the fence in ncclCommAbort(). */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&job->parent->aborted, memory_order_relaxed))
            rondo_comm_abort(job->parent->control); /* peers may make no such call */
    }
    result = job->run(job);
    return result || !job->comm ? result : open_control(job->comm);
}

static ncclResult_t run(struct job *job, bool waited)
{
    return finish(job, make(job), waited);
}

static void *work(void *argument)
{
    for (struct worker *worker = argument; worker; worker = worker->next)
        worker->result = run(&worker->job, true);
    return NULL;
}

static void *work_alone(void *argument)
{
    struct background *own = argument;
    rondo_result result = make(&own->job);
    int waits = WAITS;
    bool awaited = atomic_compare_exchange_strong_explicit(
        &own->phase, &waits, ENDS, memory_order_acq_rel, memory_order_acquire);

    finish(&own->job, result, false);
    if (!awaited)
        free(own);
    return NULL;
}

/* Takes jobs off the list: those of threads that are about to end, or all. */
static struct background *take_jobs(ncclComm_t comm, bool all)
{
    struct background **link = &comm->jobs, *taken = NULL;

    while (*link) {
        struct background *own = *link;

        /* Relaxed: pthread_join() orders what the thread did. */
        if (all || atomic_load_explicit(&own->phase, memory_order_relaxed) == ENDS) {
            *link = own->next;
            own->next = taken;
            taken = own;
        } else {
            link = &own->next;
        }
    }
    return taken;
}

/* Waits for the ends of threads that need nothing of other ranks; leaves the others. */
static void end_jobs(struct background *jobs)
{
    for (struct background *own = jobs, *next; own; own = next) {
        pthread_t thread = own->thread; /* who is left may free it at once */
        int waits = WAITS;

        next = own->next;
        if (atomic_compare_exchange_strong_explicit(&own->phase, &waits, LEFT, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            pthread_detach(thread);
        } else {
            pthread_join(thread, NULL);
            free(own);
        }
    }
}

/* Starts its thread, and gives it to the communicator, the parent's if there is no new one, unless
 * the client has left that already. Those whose threads are about to end are done with. */
static bool start_thread(struct background *own)
{
    ncclComm_t comm = own->job.comm ? own->job.comm : own->job.parent;
    struct background *jobs;
    bool started;

    pthread_mutex_lock(&comm->lock);
    started = !pthread_create(&own->thread, NULL, work_alone, own);
    if (started) {
        own->next = comm->jobs;
        comm->jobs = own;
    }
    /* Those that a forked child has are its parent's. */
    jobs = communicator_is_forked(comm) ? NULL : take_jobs(comm, comm->jobs_left);
    pthread_mutex_unlock(&comm->lock);
    end_jobs(jobs);
    return started;
}

void compat_jobs_end(ncclComm_t comm)
{
    struct background *jobs;

    if (communicator_is_forked(comm))
        return;
    pthread_mutex_lock(&comm->lock);
    comm->jobs_left = true;
    jobs = take_jobs(comm, true);
    pthread_mutex_unlock(&comm->lock);
    end_jobs(jobs);
}

static bool waits(const struct job *job)
{
    return job->comm ? job->comm->wishes.blocking : job->parent->wishes.blocking;
}

static ncclResult_t start_alone(struct job *job)
{
    struct background *own = malloc(sizeof(*own));

    if (!own) {
        compat_job_discard(job);
        return compat_fail(NULL, ncclSystemError, "Out of memory for making a communicator.");
    }
    own->job = *job;
    atomic_init(&own->phase, WAITS);
    set_state(job->parent, ncclInProgress);
    if (start_thread(own))
        return ncclInProgress;
    set_state(job->parent, ncclSuccess);
    free(own);
    compat_job_discard(job);
    return compat_fail(NULL, ncclSystemError, "Cannot start a thread for making a communicator.");
}

/* Puts the worker behind the last one before it that has the same parent, if there is one. */
static void queue_worker(struct worker *workers, struct worker *worker)
{
    for (struct worker *before = worker; before-- > workers && !worker->follows;)
        if (waits(&before->job) && before->job.parent && before->job.parent == worker->job.parent) {
            before->next = worker;
            worker->follows = true;
        }
}

static void start(struct worker *worker)
{
    worker->started = !pthread_create(&worker->thread, NULL, work, worker);
    for (struct worker *one = worker; one && !worker->started; one = one->next) {
        compat_job_discard(&one->job);
        one->result =
            compat_fail(NULL, ncclSystemError, "Cannot start a thread for making a communicator.");
    }
}

ncclResult_t compat_job_run_all(struct job *jobs, int count)
{
    struct worker *workers = calloc((size_t)count, sizeof(*workers));
    ncclResult_t result = ncclSuccess;

    for (int i = 0; i < count && !workers; i++)
        compat_job_discard(&jobs[i]);
    if (!workers)
        return compat_fail(NULL, ncclSystemError, "Out of memory for %d communicators.", count);
    for (int i = 0; i < count; i++) {
        workers[i].job = jobs[i];
        if (waits(&jobs[i]))
            queue_worker(workers, &workers[i]);
    }
    for (int i = 0; i < count; i++)
        if (!waits(&jobs[i]))
            workers[i].result = start_alone(&jobs[i]);
        else if (!workers[i].follows)
            start(&workers[i]);
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
