/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.c - see threads.h. */
#include "comm/engine/threads.h"

#include "base/fail.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* No step begins before all threads are there: steps wait for each other. */
struct gate {
    struct lock lock; /* held until it is known */
    bool closed;      /* for good: a thread is missing */
};

struct thread_step {
    struct gate *gate;
    uint64_t caller;
    rondo_result (*step)(void *);
    void *argument;
    pthread_t thread;
    rondo_result result;
    char sentence[FAIL_SENTENCE_MAX];
};

static _Thread_local uint64_t caller;
static _Thread_local bool is_step;

uint64_t threads_caller(void)
{
    static _Atomic uint64_t last;

    if (!caller)
        caller = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return caller;
}

bool threads_is_step(void)
{
    return is_step;
}

static void *run_step(void *argument)
{
    struct thread_step *step = argument;
    bool closed;

    caller = step->caller;
    is_step = true;
    lock_take(&step->gate->lock);
    closed = step->gate->closed;
    lock_give(&step->gate->lock);
    if (closed)
        return NULL;
    step->result = step->step(step->argument);
    if (step->result)
        memcpy(step->sentence, fail_sentence(), strlen(fail_sentence()) + 1);
    return NULL;
}

rondo_result threads_run(rondo_result (*step)(void *), void *const *arguments, int count)
{
    struct thread_step *steps = calloc((size_t)count, sizeof(*steps));
    struct gate gate = {.lock = LOCK_AT(LOCK_THREADS_GATE)};
    rondo_result result = RONDO_OK;
    int started = 0;

    if (!steps)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %d threads.", count);
    lock_take(&gate.lock);
    for (; started < count && !result; started++) {
        int error;

        steps[started].gate = &gate;
        steps[started].caller = threads_caller();
        steps[started].step = step;
        steps[started].argument = arguments[started];
        error = pthread_create(&steps[started].thread, NULL, run_step, &steps[started]);
        if (error) {
            result = rondo_fail(RONDO_ERROR_SYSTEM, "Cannot start thread %d of %d: %s.",
                                started + 1, count, strerror(error));
            break;
        }
    }
    gate.closed = result != RONDO_OK;
    lock_give(&gate.lock);
    for (int i = 0; i < started; i++)
        pthread_join(steps[i].thread, NULL);
    for (int i = 0; i < started && !result; i++)
        if (steps[i].result)
            result = rondo_fail(steps[i].result, "%s", steps[i].sentence);
    free(steps);
    return result;
}
