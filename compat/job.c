/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.c - making a communicator, which has to wait for other ranks.
 *
 * A single one is made by the calling thread, those of a group by a thread each, as they may be
 * ranks that wait for each other; where the client asked for a communicator that does not block, a
 * thread in the background makes it. Ranks tell the jobs of one parent apart by their order, so
 * those of a group are a chain, which one thread makes, and another chain is refused until it has
 * ended; only a shrink that aborts comes in beside splits, and ends them. The job holds what it
 * works on, so the client may abort it at any time. Who destroys a communicator waits for the ends
 * of threads that need nothing of other ranks any more: so when the client unloads the library, or
 * ends, none of them is in it.
 */
#include "compat/compat.h"

#include <stdlib.h>
#include <string.h>

struct worker {
    struct job job;
    struct worker *next; /* of the chain: a later job of the same parent */
    bool follows;        /* it is such a one */
    pthread_t thread;
    bool started;
    ncclResult_t result;
};

enum { WAITS, ENDS, LEFT };

struct background {
    struct background *next; /* of the same communicator */
    pthread_t thread;
    atomic_int phase; /* WAITS: for other ranks; LEFT: nobody waits for it, it frees itself */
    int count;
    struct job jobs[]; /* the chain */
};

/*
 * Gives up what a chain has claimed, after its last job: others may make communicators out of the
 * parent then. `result` is what the client, who asks for it, finds; NULL: nothing new.
 */
static void release_parent(const struct job *job, const ncclResult_t *result)
{
    int state, next;

    if (!job->claim)
        return;
    state = atomic_load_explicit(&job->parent->state, memory_order_relaxed);
    do {
        next = state & ~job->claim;
        if (result)
            next = (next & ~STATE_RESULT) | (int)*result;
        /* Release, pairs with the acquire in set_claim() and communicator_check(). */
    } while (!atomic_compare_exchange_weak_explicit(&job->parent->state, &state, next,
                                                    memory_order_release, memory_order_relaxed));
}

void compat_job_discard(struct job *job)
{
    if (job->comm) {
        *job->ret_comm = NULL; /* the client does not get it */
        communicator_release(job->comm);
    }
    communicator_drop(job->comm);
    release_parent(job, NULL);
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

/* A split beside a shrink hangs: only one that aborts is let in. It is ended when all who shrink
 * have the new communicator, as `control` has to be sound between hosts while that is made. */
static void end_hanging_splits(const struct job *job)
{
    if (job->claim && !(job->claim & STATE_SPLITS) &&
        atomic_load_explicit(&job->parent->state, memory_order_acquire) & STATE_SPLITS)
        rondo_comm_abort(job->parent->control);
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
    ncclResult_t of_parent = comm ? ncclSuccess : result;

    /* Release, pairs with the acquire in communicator_check(). Jobs on it come later. */
    if (comm)
        atomic_store_explicit(&comm->state, result, memory_order_release);
    if (!made)
        end_hanging_splits(job);
    release_parent(job, waited ? NULL : &of_parent);
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
        /* Pairs with the fence in ncclCommAbort(). */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&job->parent->aborted, memory_order_relaxed))
            rondo_comm_abort(job->parent->control); /* peers may make no such call */
    }
    result = job->run(job);
    return result || !job->comm ? result : open_control(job->comm);
}

static void *work(void *argument)
{
    for (struct worker *worker = argument; worker; worker = worker->next)
        worker->result = finish(&worker->job, make(&worker->job), true);
    return NULL;
}

static void *work_alone(void *argument)
{
    struct background *own = argument;
    struct job *last = &own->jobs[own->count - 1];
    rondo_result result;
    int waits = WAITS;
    bool awaited;

    for (struct job *job = own->jobs; job < last; job++)
        finish(job, make(job), false);
    result = make(last);
    awaited = atomic_compare_exchange_strong_explicit(&own->phase, &waits, ENDS,
                                                      memory_order_acq_rel, memory_order_acquire);
    finish(last, result, false);
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

/* Starts its thread, and gives it to the last communicator, the parent's if there is no new one,
 * unless the client has left that already. Those whose threads are about to end are done with. */
static bool start_thread(struct background *own)
{
    const struct job *last = &own->jobs[own->count - 1];
    ncclComm_t comm = last->comm ? last->comm : last->parent;
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

/* A chain is waited for as a whole: one thread makes all of it. */
static bool chain_waits(const struct worker *first)
{
    bool any = false;

    for (const struct worker *one = first; one; one = one->next)
        any |= waits(&one->job);
    return any;
}

static void refuse_chain(struct worker *first, ncclResult_t result, const char *why)
{
    compat_fail(first->job.parent, result, "%s", why);
    for (struct worker *one = first; one; one = one->next) {
        compat_job_discard(&one->job);
        one->result = result;
    }
}

/* Adds `claim` to the parent's state. False: a job that is not in `beside` has the parent. */
static bool set_claim(ncclComm_t parent, int claim, int beside)
{
    int state = atomic_load_explicit(&parent->state, memory_order_relaxed);

    do
        if (state & STATE_JOBS & ~beside)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&parent->state, &state, state | claim,
                                                  memory_order_acq_rel, memory_order_relaxed));
    return true;
}

/* Makes the parent the chain's, which has done nothing until then. False: the chain is refused, as
 * another thread's is under way. */
static bool claim_parent(struct worker *first)
{
    int claim = 0, beside = STATE_SPLITS;
    struct worker *last = first;

    if (!first->job.parent)
        return true;
    for (struct worker *one = first; one; one = one->next) {
        claim |= one->job.ranks ? STATE_SHRINKS : STATE_SPLITS;
        if (!one->job.aborts)
            beside = 0;
        last = one;
    }
    if (!chain_waits(first))
        claim |= claim * IN_BACKGROUND;
    if (!set_claim(first->job.parent, claim, beside)) {
        refuse_chain(
            first, ncclInvalidUsage,
            "Another thread makes a communicator out of this one at the moment, and ranks tell "
            "such calls apart by their order: make them one after another, or in one group. "
            "ncclCommShrink() with NCCL_SHRINK_ABORT ends a split that hangs.");
        return false;
    }
    last->job.claim = claim;
    for (struct worker *one = first; one; one = one->next)
        if (one->job.begin)
            one->job.begin(&one->job);
    return true;
}

/* A thread in the background, for a chain that nobody waits for. */
static void start_alone(struct worker *first)
{
    struct background *own;
    int count = 0;

    for (struct worker *one = first; one; one = one->next) {
        one->result = ncclInProgress;
        count++;
    }
    own = malloc(sizeof(*own) + (size_t)count * sizeof(own->jobs[0]));
    if (!own) {
        refuse_chain(first, ncclSystemError, "Out of memory for making a communicator.");
        return;
    }
    own->count = 0;
    for (struct worker *one = first; one; one = one->next)
        own->jobs[own->count++] = one->job;
    atomic_init(&own->phase, WAITS);
    if (start_thread(own))
        return;
    free(own);
    refuse_chain(first, ncclSystemError, "Cannot start a thread for making a communicator.");
}

static void start(struct worker *first)
{
    first->started = !pthread_create(&first->thread, NULL, work, first);
    if (!first->started)
        refuse_chain(first, ncclSystemError, "Cannot start a thread for making a communicator.");
}

/* Puts the worker behind the last one before it that has the same parent, if there is one. */
static void queue_worker(struct worker *workers, struct worker *worker)
{
    for (struct worker *before = worker; before-- > workers && !worker->follows;)
        if (before->job.parent && before->job.parent == worker->job.parent) {
            before->next = worker;
            worker->follows = true;
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
        queue_worker(workers, &workers[i]);
    }
    for (int i = 0; i < count; i++)
        if (!workers[i].follows && claim_parent(&workers[i])) {
            if (chain_waits(&workers[i]))
                start(&workers[i]);
            else
                start_alone(&workers[i]);
        }
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
    struct worker alone = {.job = *job};

    if (compat_in_group())
        return compat_group_add_job(job);
    if (!claim_parent(&alone))
        return alone.result;
    if (waits(job))
        work(&alone);
    else
        start_alone(&alone);
    return alone.result;
}
