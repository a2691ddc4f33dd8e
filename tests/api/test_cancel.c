/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cancel.c - a thread that is cancelled in a call finishes it first: what it holds, the turn
 * of the communicator above all, is there for others afterwards.
 */
#include "../world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct world_report report;

/* A call in a thread of its own. */
struct caller {
    rondo_comm *comm;
    rondo_stream *stream; /* if it waits for one */
    float value, got;
    rondo_result result;
    bool in_group, returned;
    pthread_t thread;
    _Atomic pid_t number; /* of the thread that is about to wait */
};

static void *call(void *argument)
{
    struct caller *me = argument;

    me->value = 1;
    atomic_store_explicit(&me->number, gettid(), memory_order_relaxed);
    if (me->stream)
        me->result = rondo_stream_synchronize(me->stream);
    else
        me->result =
            rondo_all_reduce(&me->value, &me->value, 1, RONDO_FLOAT32, RONDO_SUM, me->comm, NULL);
    me->returned = true;
    pthread_testcancel();
    return NULL;
}

static rondo_result add_up(rondo_comm *comm, rondo_stream *stream, float *value, char *sentence)
{
    rondo_result result;

    *value = 1;
    result = rondo_all_reduce(value, value, 1, RONDO_FLOAT32, RONDO_SUM, comm, stream);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    if (!stream && *value != (float)rondo_comm_size(comm))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "the sum is %g", (double)*value);
    return RONDO_OK;
}

/* Cancel it while it waits for ranks that come when it has been: its end is after its call. */
static rondo_result cancel(struct caller *caller, char *sentence)
{
    void *end = NULL;

    if (pthread_create(&caller->thread, NULL, call, caller))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    world_await_told(&caller->number);
    pthread_cancel(caller->thread);
    world_will_wait(0);
    pthread_join(caller->thread, &end);
    if (end != PTHREAD_CANCELED || !caller->returned)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "cancelled: %d, returned: %d",
                         end == PTHREAD_CANCELED, caller->returned);
    return caller->result;
}

/* `argument`: how many calls are made alike before, so that short ways of the library are taken. */
static rondo_result cancel_in_a_call(rondo_comm *comm, void *argument, char *sentence)
{
    struct caller caller = {.comm = comm};
    rondo_result result = RONDO_OK;
    float value;

    for (int i = 0; i < *(const int *)argument && !result; i++)
        result = add_up(comm, NULL, &caller.value, sentence);
    if (result)
        return result;
    if (rondo_comm_rank(comm) == 0) {
        result = cancel(&caller, sentence);
        if (!result && caller.value != (float)rondo_comm_size(comm))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "it had %g", (double)caller.value);
    } else {
        world_await_rank(0);
        result = add_up(comm, NULL, &caller.value, sentence);
    }
    return result ? result : add_up(comm, NULL, &value, sentence);
}

Test(cancel, a_call_that_waits_is_finished_and_others_follow)
{
    static const int before[] = {0, 5};

    for (int i = 0; i < 2; i++) {
        struct world world = {.size = 3, .processes = true};
        int calls = before[i];

        cr_expect_eq(world_run(&world, cancel_in_a_call, &calls, &report), 0, "%s", report.summary);
        world.processes = false;
        cr_expect_eq(world_run(&world, cancel_in_a_call, &calls, &report), 0, "%s", report.summary);
    }
}

/* A message to the right and one from the left, or a sum, so often that the short way is taken; in
 * the last one the thread has been cancelled before. */
static void *call_when_cancelled(void *argument)
{
    enum { CALLS = 6 };
    struct caller *me = argument;
    int size = rondo_comm_size(me->comm), rank = rondo_comm_rank(me->comm);
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    for (int i = 0; i < CALLS && !me->result; i++) {
        if (i == CALLS - 1)
            pthread_setcancelstate(before, NULL);
        if (me->in_group) {
            rondo_group_start();
            rondo_send(&me->value, 1, RONDO_FLOAT32, (rank + 1) % size, me->comm, NULL);
            rondo_recv(&me->got, 1, RONDO_FLOAT32, (rank + size - 1) % size, me->comm, NULL);
            me->result = rondo_group_end();
        } else {
            me->result =
                rondo_all_reduce(&me->value, &me->got, 1, RONDO_FLOAT32, RONDO_SUM, me->comm, NULL);
        }
    }
    me->returned = true;
    pthread_testcancel();
    return NULL;
}

/* `argument`: whether the calls are groups. */
static rondo_result cancel_before_a_call(rondo_comm *comm, void *argument, char *sentence)
{
    struct caller caller = {.comm = comm, .in_group = *(const bool *)argument};
    void *end = NULL;

    if (pthread_create(&caller.thread, NULL, call_when_cancelled, &caller))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    pthread_join(caller.thread, &end);
    if (end != PTHREAD_CANCELED || !caller.returned || caller.result)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "cancelled: %d, returned: %d, %s",
                         end == PTHREAD_CANCELED, caller.returned, rondo_last_error(comm));
    return add_up(comm, NULL, &caller.value, sentence);
}

Test(cancel, a_repeated_call_is_finished_by_a_thread_that_has_been_cancelled_before)
{
    const struct world world = {.size = 3, .processes = true};

    for (int in_group = 0; in_group < 2; in_group++) {
        bool groups = in_group;

        cr_expect_eq(world_run(&world, cancel_before_a_call, &groups, &report), 0, "%s",
                     report.summary);
    }
}

static rondo_result cancel_at_a_stream(rondo_comm *comm, void *argument, char *sentence)
{
    struct caller caller = {.comm = comm};
    rondo_result result = rondo_stream_open(&caller.stream);
    float value;

    if (rondo_comm_rank(comm) > 0)
        world_await_rank(0);
    if (!result)
        result = add_up(comm, caller.stream, &value, sentence);
    if (!result && rondo_comm_rank(comm) == 0)
        result = cancel(&caller, sentence);
    if (!result)
        result = rondo_stream_synchronize(caller.stream);
    rondo_stream_close(caller.stream);
    return result ? result : add_up(comm, NULL, &value, sentence);
}

Test(cancel, a_wait_for_a_stream_leaves_no_lock_behind)
{
    const struct world world = {.size = 2};

    cr_expect_eq(world_run(&world, cancel_at_a_stream, NULL, &report), 0, "%s", report.summary);
}

/* A rank that does not want to wait aborts the call, and the cancellation follows. */
static rondo_result abort_then_cancel(rondo_comm *comm, void *argument, char *sentence)
{
    struct caller caller = {.comm = comm};
    void *end = NULL;

    if (rondo_comm_rank(comm) > 0) {
        world_await_rank(0); /* until the call has been aborted */
        return RONDO_OK;
    }
    if (pthread_create(&caller.thread, NULL, call, &caller))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    world_await_told(&caller.number);
    pthread_cancel(caller.thread);
    rondo_comm_abort(comm);
    world_will_wait(0);
    pthread_join(caller.thread, &end);
    if (end != PTHREAD_CANCELED || caller.result != RONDO_ERROR_ABORTED)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "cancelled: %d, result: %d",
                         end == PTHREAD_CANCELED, (int)caller.result);
    return RONDO_ERROR_ABORTED; /* no finalize: it is broken */
}

Test(cancel, an_abort_ends_the_call_and_close_ends)
{
    const struct world world = {.size = 2};

    world_run(&world, abort_then_cancel, NULL, &report);
    cr_expect_eq(report.results[0], RONDO_ERROR_ABORTED, "%s", report.summary);
}
