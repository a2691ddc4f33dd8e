/* SPDX-License-Identifier: BSD-3-Clause */
/* failures.c - ranks that die, fall silent or give up, see failures.h. */
#include "failures.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct buffers {
    char *input, *output;
};

static rondo_result buffers_open(const struct failures *f, int size, struct buffers *buffers)
{
    buffers->input = calloc((size_t)size * f->count + 1, sizeof(float));
    buffers->output = calloc((size_t)size * f->count + 1, sizeof(float));
    return buffers->input && buffers->output ? RONDO_OK : RONDO_ERROR_MEMORY;
}

static void buffers_close(struct buffers *buffers)
{
    free(buffers->input);
    free(buffers->output);
}

/* A message to the right and one from the left, in a group. */
static rondo_result pass_on(const struct failures *f, rondo_comm *comm,
                            const struct buffers *buffers)
{
    int size = rondo_comm_size(comm), rank = rondo_comm_rank(comm);
    rondo_result result = rondo_group_start();

    if (!result)
        result = rondo_send(buffers->input, f->count, RONDO_FLOAT32, (rank + 1) % size, comm, NULL);
    if (!result)
        result = rondo_recv(buffers->output, f->count, RONDO_FLOAT32, (rank + size - 1) % size,
                            comm, NULL);
    return result ? result : rondo_group_end();
}

static rondo_result call_once(const struct failures *f, rondo_comm *comm,
                              const struct buffers *buffers)
{
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = f->collective,
        .type = RONDO_FLOAT32,
        .input = buffers->input,
        .output = buffers->output,
        .count = f->count,
        .comm = comm,
        .algorithm = f->algorithm,
    };

    return f->collective == RONDO_SEND ? pass_on(f, comm, buffers) : rondo_collective_call(&call);
}

/* The good calls, then calls until one fails. A barrier in
 * between keeps the ranks of one-way collectives together. */
static rondo_result call_until_it_fails(struct failures *f, rondo_comm *comm,
                                        const struct buffers *buffers)
{
    int rank = rondo_comm_rank(comm);
    rondo_result result = RONDO_OK;

    while (!result) {
        result = call_once(f, comm, buffers);
        if (!result)
            result = rondo_barrier(comm, NULL);
    }
    f->noticed[rank] = now();
    return result;
}

static rondo_result good_calls(struct failures *f, rondo_comm *comm, const struct buffers *buffers)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < f->calls && !result; i++) {
        result = call_once(f, comm, buffers);
        if (!result)
            result = rondo_barrier(comm, NULL);
    }
    return result;
}

rondo_result failures_die(rondo_comm *comm, void *argument, char *sentence)
{
    struct failures *f = argument;
    struct buffers buffers = {NULL, NULL};
    rondo_result result = buffers_open(f, rondo_comm_size(comm), &buffers);

    if (!result)
        result = good_calls(f, comm, &buffers);
    if (!result && rondo_comm_rank(comm) == f->culprit) {
        f->died = now();
        raise(SIGKILL);
    }
    if (!result)
        result = call_until_it_fails(f, comm, &buffers);
    world_say(sentence, result, "%s", rondo_last_error(comm));
    buffers_close(&buffers);
    return result;
}

rondo_result failures_fall_silent(rondo_comm *comm, void *argument, char *sentence)
{
    struct failures *f = argument;
    struct buffers buffers = {NULL, NULL};
    rondo_result result = buffers_open(f, rondo_comm_size(comm), &buffers);

    if (!result)
        result = good_calls(f, comm, &buffers);
    if (!result && rondo_comm_rank(comm) == f->culprit) {
        /* Relaxed: only the number matters. */
        while (atomic_load_explicit(&f->ended, memory_order_relaxed) < rondo_comm_size(comm) - 1)
            usleep(1000);
        result = rondo_comm_query(comm);
    } else if (!result) {
        result = call_until_it_fails(f, comm, &buffers);
        atomic_fetch_add_explicit(&f->ended, 1, memory_order_relaxed);
    }
    world_say(sentence, result, "%s", rondo_last_error(comm));
    buffers_close(&buffers);
    return result;
}

/* ---- Chains ---------------------------------------------------------------------------------- */

/* Stops this process, when its call waits. */
static void *stop_when_it_waits(void *argument)
{
    struct failures *f = argument;

    world_await_rank(f->culprit);
    atomic_store_explicit(&f->process, (int)getpid(), memory_order_relaxed);
    kill(getpid(), SIGSTOP);
    return NULL;
}

static rondo_result wait_for_next(struct failures *f, rondo_comm *comm)
{
    int rank = rondo_comm_rank(comm), size = rondo_comm_size(comm);
    float received = 0;

    if (rank != (f->culprit + 1) % size)
        world_await_rank((rank + size - 1) % size);
    world_will_wait(rank);
    return rondo_recv(&received, 1, RONDO_FLOAT32, (rank + 1) % size, comm, NULL);
}

/* The last one to end lets the culprit go on. */
static void end_wait(struct failures *f, int size)
{
    int process = atomic_load_explicit(&f->process, memory_order_relaxed);

    if (atomic_fetch_add_explicit(&f->ended, 1, memory_order_relaxed) == size - 2 && process)
        kill(process, SIGCONT);
}

rondo_result failures_wait_in_chain(rondo_comm *comm, void *argument, char *sentence)
{
    struct failures *f = argument;
    int size = rondo_comm_size(comm);
    bool culprit = rondo_comm_rank(comm) == f->culprit;
    bool started = false;
    rondo_result result = rondo_barrier(comm, NULL);
    pthread_t thread;

    if (!result && f->timeout > 0)
        result = rondo_comm_set_timeout(comm, f->timeout);
    if (!result && culprit && f->stops) {
        started = !pthread_create(&thread, NULL, stop_when_it_waits, f);
        result = started ? RONDO_OK : RONDO_ERROR_SYSTEM;
    }
    if (!result && culprit && !f->stops)
        /* Relaxed: only the number matters. */
        while (atomic_load_explicit(&f->ended, memory_order_relaxed) < size - 1)
            usleep(1000);
    else if (!result)
        result = wait_for_next(f, comm);
    if (started)
        pthread_join(thread, NULL);
    if (!culprit)
        end_wait(f, size);
    world_say(sentence, result, "%s", rondo_last_error(comm));
    return result;
}

/* ---- Abort ----------------------------------------------------------------------------------- */

static void *abort_when_it_waits(void *comm)
{
    world_await_rank(rondo_comm_rank(comm));
    rondo_comm_abort(comm);
    return NULL;
}

rondo_result failures_abort(rondo_comm *comm, void *argument, char *sentence)
{
    struct failures *f = argument;
    struct buffers buffers = {NULL, NULL};
    bool culprit = rondo_comm_rank(comm) == f->culprit, started = false;
    bool lazy = rondo_comm_rank(comm) == (f->culprit + 1) % rondo_comm_size(comm);
    rondo_result result = buffers_open(f, rondo_comm_size(comm), &buffers);
    pthread_t thread;

    if (!result)
        result = good_calls(f, comm, &buffers);
    if (!result && culprit) {
        world_will_wait(f->culprit);
        started = !pthread_create(&thread, NULL, abort_when_it_waits, comm);
        result = started ? RONDO_OK : RONDO_ERROR_SYSTEM;
    }
    if (!result && lazy) {
        while (!(result = rondo_comm_query(comm)))
            usleep(1000);
    } else if (!result) {
        result = call_until_it_fails(f, comm, &buffers);
    }
    if (culprit && started)
        pthread_join(thread, NULL);
    world_say(sentence, result, "%s", rondo_last_error(comm));
    buffers_close(&buffers);
    return result;
}

static void *abort_in_dup(void *comm)
{
    usleep(
        (useconds_t)(world_hash((uint64_t)(uintptr_t)comm, (uint64_t)rondo_comm_rank(comm)) % 400));
    rondo_comm_abort(comm);
    return NULL;
}

/* Until it fails. */
static rondo_result make_copies(rondo_comm *parent, bool culprit)
{
    rondo_result result = RONDO_OK;
    pthread_t thread;

    if (culprit && pthread_create(&thread, NULL, abort_in_dup, parent))
        return RONDO_ERROR_SYSTEM;
    while (!result) {
        rondo_comm *copy = NULL;

        result = rondo_comm_dup(parent, &copy);
        rondo_comm_close(copy);
    }
    if (culprit)
        pthread_join(thread, NULL);
    return result;
}

rondo_result failures_abort_in_dup(rondo_comm *comm, void *argument, char *sentence)
{
    const struct failures *f = argument;
    rondo_result result = RONDO_OK;

    for (int round = 0; round < f->calls && !result; round++) {
        bool culprit = rondo_comm_rank(comm) == round % rondo_comm_size(comm);
        rondo_comm *parent = NULL;

        result = rondo_comm_dup(comm, &parent);
        if (!result)
            result = rondo_barrier(comm, NULL); /* everybody has made it */
        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(comm));
        result = make_copies(parent, culprit);
        if (result != RONDO_ERROR_ABORTED)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "round %d: %d, %s", round, (int)result,
                             rondo_last_error(parent));
        result = rondo_barrier(comm, NULL);
        rondo_comm_close(parent);
    }
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}
